#include <string>
#include <utility>
#include <vector>

#include <untax/core/error.hpp>
#include <untax/taxes/timing.hpp>

#include "bench/suites/cuda/rma_parts.hpp"
#include "src/taxes/cuda/gpu_team.cuh"

namespace untax::bench {
namespace {

enum class atomic_kind { add, exchange, compare_exchange };

/// One launch at one rank.
struct atomic_request {
  std::uint64_t* words = nullptr;  ///< at the peer
  std::uint64_t mask = 0;          ///< their number less one
  int turns = 1;                   ///< of each thread
  std::uint64_t* change = nullptr;
};

[[nodiscard]] __device__ std::uint64_t scattered(std::uint64_t i) {
  i *= 0x9e3779b97f4a7c15ULL;
  return i ^ i >> 29U;
}

/// Adds the change of the sum of the words to `*change`.
template <atomic_kind kind, memory_order order>
__global__ void __launch_bounds__(1024) atomic_kernel(atomic_request work) {
  const device_thread thread;
  const auto number = static_cast<std::uint64_t>(device_grid::thread_rank());
  const auto threads = static_cast<std::uint64_t>(device_grid::size());
  std::uint64_t change = 0;
  std::uint64_t seen = 0;
  for (int turn = 0; turn < work.turns; ++turn) {
    const std::uint64_t operation = number + static_cast<std::uint64_t>(turn) * threads;
    std::uint64_t* const at = work.words + (scattered(operation) & work.mask);
    if constexpr (kind == atomic_kind::add) {
      // The next operation of a lone thread has to wait for the result of this one.
      seen = atomic_add(thread, at, seen == ~0ULL ? 2U : 1U, order);
      ++change;
    } else if constexpr (kind == atomic_kind::exchange) {
      const std::uint64_t value = seen + operation + 1;
      seen = atomic_exchange(thread, at, value, order);
      change += value - seen;
    } else {
      const std::uint64_t expected = seen;
      seen = atomic_compare_exchange(thread, at, expected, expected + 1, order);
      if (seen == expected) ++change;
    }
  }
  atomic_add(thread, work.change, change, memory_order::relaxed);
}

/// Adds up words, and zeroes them.
__global__ void take_sum(std::uint64_t* words, std::int64_t count, std::uint64_t* sum) {
  std::uint64_t own = 0;
  for (std::int64_t i = device_grid::thread_rank(); i < count; i += device_grid::size()) {
    own += words[i];
    words[i] = 0;
  }
  atomic_add(device_thread{}, sum, own, memory_order::relaxed);
}

/// The place of the words of the operations, and the threads that execute these.
struct atomic_place {
  const char* name;
  int blocks;
  int threads;
  int turns;
  std::uint64_t words;
  std::vector<int> ranks;
};

class atomic_bench {
 public:
  explicit atomic_bench(gpu_team& team)
      : team_(team),
        words_(team.allocate<std::uint64_t>(most_words, "words of atomics")),
        sums_(team.allocate<std::uint64_t>(2, "sums of atomics")) {}

  /// Seconds of an operation on words of rank 1. Throws if an operation was lost.
  template <atomic_kind kind, memory_order order>
  double run(const atomic_place& place) {
    const auto launch = [&](int rank, cudaStream_t stream) {
      const auto r = static_cast<std::size_t>(rank);
      atomic_kernel<kind, order><<<place.blocks, place.threads, 0, stream>>>(
          {words_[r].at(1), place.words - 1, place.turns, sums_[r].local()});
    };
    const double seconds = team_.timed(place.ranks, launch);
    team_.run({1}, [&](int rank, cudaStream_t stream) {
      const auto r = static_cast<std::size_t>(rank);
      take_sum<<<132, 1024, 0, stream>>>(words_[r].local(), static_cast<std::int64_t>(place.words),
                                         sums_[r].local(1));
    });
    const std::uint64_t changes = taken(0, 0) + taken(1, 0);
    if (const std::uint64_t sum = taken(1, 1); sum != changes) {
      throw error(errc::internal, "bench rma: atomics on " + std::string(place.name) +
                                      " changed their sum by " + std::to_string(sum) +
                                      ", and say that it was " + std::to_string(changes));
    }
    return seconds /
           (static_cast<double>(place.ranks.size()) * place.blocks * place.threads * place.turns);
  }

  static constexpr std::uint64_t most_words = std::uint64_t{8} << 20U;

 private:
  /// The sum of a rank's words, which are zero afterwards.
  std::uint64_t taken(int rank, std::size_t which) {
    std::uint64_t* const at = sums_[static_cast<std::size_t>(rank)].local(which);
    std::uint64_t value = 0;
    team_.use(rank);
    gpu::require(cudaMemcpy(&value, at, sizeof value, cudaMemcpyDeviceToHost), "reading a sum");
    gpu::require(cudaMemset(at, 0, sizeof value), "clearing a sum");
    gpu::require(cudaDeviceSynchronize(), "clearing a sum");
    return value;
  }

  gpu_team& team_;
  std::vector<symmetric<std::uint64_t>> words_;
  std::vector<symmetric<std::uint64_t>> sums_;
};

std::vector<atomic_place> places() {
  return {{"one word, one thread", 1, 1, 1000, 1, {0}},
          {"scattered words", 132, 1024, 32, atomic_bench::most_words, {0}},
          {"one word, all threads of both ranks", 132, 1024, 2, 1, {0, 1}}};
}

template <atomic_kind kind, memory_order order>
void measure(atomic_bench& bench, const atomic_place& place, const char* what,
             const rma_suite_options& options, std::vector<rma_figure>& figures) {
  std::vector<double> seconds;
  // The first turn is a warm-up.
  for (int repeat = 0; repeat <= options.repeats; ++repeat) {
    const double took = bench.run<kind, order>(place);
    if (repeat > 0) seconds.push_back(took);
  }
  rma_figure f;
  f.table = rma_table::atomics;
  f.what = std::string(what) + ", " + place.name;
  f.method = order == memory_order::relaxed ? "relaxed" : "acq_rel";
  f.blocks = place.blocks;
  f.time = spread_of(std::move(seconds));
  figures.push_back(std::move(f));
  if (options.progress) options.progress();
}

template <atomic_kind kind>
void measure_kind(atomic_bench& bench, const char* what, const rma_suite_options& options,
                  std::vector<rma_figure>& figures) {
  const std::vector<atomic_place> at = places();
  for (const atomic_place& place : at)
    measure<kind, memory_order::relaxed>(bench, place, what, options, figures);
  measure<kind, memory_order::acq_rel>(bench, at.front(), what, options, figures);
}

}  // namespace

std::vector<rma_figure> measure_atomics(gpu_team& team, const rma_suite_options& options) {
  atomic_bench bench(team);
  std::vector<rma_figure> figures;
  measure_kind<atomic_kind::add>(bench, "add", options, figures);
  measure_kind<atomic_kind::exchange>(bench, "exchange", options, figures);
  measure_kind<atomic_kind::compare_exchange>(bench, "compare-exchange", options, figures);
  return figures;
}

int atomic_steps() { return 3 * (static_cast<int>(places().size()) + 1); }

}  // namespace untax::bench

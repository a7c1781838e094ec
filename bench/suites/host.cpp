#include "bench/suites/host.hpp"

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include <untax/core/error.hpp>
#include <untax/memory/host_memory.hpp>
#include <untax/ops/all_gather_gemm.hpp>
#include <untax/rma/copy.hpp>
#include <untax/rma/signal.hpp>
#include <untax/taxes/timing.hpp>
#include <untax/world/block.hpp>

#include "bench/suites/seconds_of.hpp"
#include "bench/suites/sleeping_ranks.hpp"
#include "engines/host/openblas.hpp"
#include "ops/common/random_matrix.hpp"
#include "src/core/start_threads.hpp"

namespace untax::bench {
namespace {

using namespace std::chrono_literals;

constexpr int comparisons = 3;
constexpr int warmups = 2;

/// Throws `out_of_memory` if `count` threads cannot be made. OpenBLAS does not check whether its
/// threads exist, and would wait for them for ever.
void require_threads(int count) {
  std::vector<std::thread> tried;
  const auto join_all = [&tried] {
    for (std::thread& thread : tried) thread.join();
  };
  try {
    start_threads(tried, count, "OpenBLAS in untax bench", [](int) {});
  } catch (...) {
    join_all();
    throw;
  }
  join_all();
}

/// Fills in the times of a comparison. Both functions return the seconds of one run.
template <class Ours, class Reference>
void take_turns(comparison& c, const host_suite_options& options, Ours&& ours,
                Reference&& reference) {
  std::vector<double> times;
  std::vector<double> reference_times;
  for (int repeat = -warmups; repeat < options.repeats; ++repeat) {
    const double reference_time = reference();
    const double time = ours();
    if (repeat < 0) continue;
    reference_times.push_back(reference_time);
    times.push_back(time);
    if (options.progress) options.progress();
  }
  c.time = spread_of(std::move(times));
  c.reference_time = spread_of(std::move(reference_times));
}

comparison put_beside_memcpy(const host_suite_options& options) {
  constexpr std::int64_t bytes = 64'000'000;
  comparison c{"put of 64 MB", "memcpy", {}, {}, true, 0.90, bytes};
  world_options settings;
  settings.heap_bytes = std::size_t{bytes} + (std::size_t{1} << 20);
  sleeping_ranks ranks(2, settings);
  symmetric<std::byte> landing;
  (void)ranks.run([&](world& w) {
    const auto mine = w.allocate<std::byte>(bytes, "landing of the put");
    if (w.rank() == 0) landing = mine;
  });
  const std::vector<std::byte> source(bytes, std::byte{1});
  const lone_thread self;
  take_turns(
      c, options,
      [&] { return seconds_of([&] { put(self, landing.at(1), source.data(), bytes); }); },
      [&] { return seconds_of([&] { std::memcpy(landing.at(1), source.data(), bytes); }); });
  return c;
}

/// The same multiplications in two ways: by two ranks that gather A, and by one call of the
/// library.
class gemm_pair {
 public:
  static constexpr std::int64_t m = 1024;
  static constexpr std::int64_t n = 2048;  // of one rank
  static constexpr std::int64_t k = 2048;
  static constexpr int world_size = 2;

  gemm_pair() : ranks_(world_size, settings()) {
    require_threads(world_size - 1);
    random_matrix{1}.fill(whole(a_, m, k), {0, m}, {0, k});
    random_matrix{2}.fill(whole(b_, n * world_size, k), {0, n * world_size}, {0, k});
    (void)ranks_.run([&](world& w) {
      ops_[w.rank()] = std::make_unique<all_gather_gemm>(
          w, all_gather_gemm_problem{m, n, k, dtype::f32, gather_axis::rows});
    });
  }
  gemm_pair(const gemm_pair&) = delete;
  gemm_pair& operator=(const gemm_pair&) = delete;
  ~gemm_pair() {
    try {
      (void)ranks_.run([&](world& w) { ops_[w.rank()].reset(); });
    } catch (const error&) {
      // The ranks were stopped by a failure that was already thrown.
    }
  }

  double fused() {
    return ranks_.run([&](world& w) {
      const std::int64_t rank = w.rank();
      ops_[rank]->run(const_matrix(a_.data() + rank * (m / world_size) * k, m / world_size, k),
                      const_matrix(b_.data() + rank * n * k, n, k),
                      matrix(c_.data() + rank * m * n, m, n));
    });
  }

  double library() {
    host::blas().set_num_threads(world_size);
    const double seconds = seconds_of([&] {
      host::blas().sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, m, n * world_size, k, 1.0F,
                         a_.data(), k, b_.data(), k, 0.0F, reference_.data(), n * world_size);
    });
    host::blas().set_num_threads(1);
    // The library's threads poll for more work for a while before they sleep.
    std::this_thread::sleep_for(100ms);
    return seconds;
  }

  /// Throws `internal` if the two results differ.
  void compare() const {
    double difference = 0;
    double norm = 0;
    for (std::int64_t rank = 0; rank < world_size; ++rank) {
      for (std::int64_t i = 0; i < m * n; ++i) {
        const std::int64_t row = i / n;
        const auto expected = static_cast<double>(
            reference_[static_cast<std::size_t>((row * world_size + rank) * n + i % n)]);
        const auto actual = static_cast<double>(c_[static_cast<std::size_t>(rank * m * n + i)]);
        difference += (actual - expected) * (actual - expected);
        norm += expected * expected;
      }
    }
    const double relative = std::sqrt(difference / norm);
    if (relative < 1e-5) return;
    throw error(errc::internal,
                fmt::format("all_gather_gemm differs from the library's result by {:.2g}; they "
                            "have to agree within 1e-5",
                            relative));
  }

 private:
  static world_options settings() {
    world_options options;
    options.heap_bytes = std::size_t{64} << 20;
    return options;
  }
  static matrix whole(std::vector<float>& values, std::int64_t rows, std::int64_t cols) {
    return {values.data(), rows, cols};
  }

  std::vector<float> a_ = std::vector<float>(m * k);
  std::vector<float> b_ = std::vector<float>(n * world_size * k);
  std::vector<float> c_ = std::vector<float>(m * n * world_size);
  std::vector<float> reference_ = std::vector<float>(m * n * world_size);
  sleeping_ranks ranks_;
  std::unique_ptr<all_gather_gemm> ops_[world_size];
};

comparison fused_beside_library(const host_suite_options& options) {
  comparison c{"all_gather_gemm, 2 ranks", "one OpenBLAS call, 2 threads", {}, {}, false, 1.10};
  c.threads = gemm_pair::world_size;
  c.work = 2.0 * gemm_pair::m * gemm_pair::n * gemm_pair::world_size * gemm_pair::k;
  gemm_pair pair;
  take_turns(
      c, options, [&] { return pair.fused(); }, [&] { return pair.library(); });
  pair.compare();
  return c;
}

constexpr std::uint64_t round_trips = 20'000;

/// Passes a number back and forth `round_trips` times between two bare atomics.
class bare_ping_pong {
 public:
  void play(bool first) {
    for (std::uint64_t i = base_ + 1; i <= base_ + round_trips; ++i) {
      if (first) there_.value.store(i, std::memory_order_release);
      meet((first ? back_ : there_).value, i);
      if (!first) back_.value.store(i, std::memory_order_release);
    }
  }
  void advance() { base_ += round_trips; }

 private:
  struct alignas(512) line {
    std::atomic<std::uint64_t> value{0};
  };

  // This wait is the reference, so it polls by itself. It yields if the two ranks share a core:
  // without a yield each number would take a time slice.
  static void meet(const std::atomic<std::uint64_t>& value, std::uint64_t expected) {
    for (int polls = 1; value.load(std::memory_order_acquire) < expected; ++polls) {
      if (polls % 4096 == 0) std::this_thread::yield();
    }
  }

  line there_;
  line back_;
  std::uint64_t base_ = 0;
};

comparison signal_beside_atomics(const host_suite_options& options) {
  comparison c{"signal there and back", "two bare atomics", {}, {}, false, 1.50};
  world_options settings;
  settings.heap_bytes = std::size_t{1} << 20;
  sleeping_ranks ranks(2, settings);
  symmetric<std::uint64_t> counters[2];
  (void)ranks.run(
      [&](world& w) { counters[w.rank()] = w.allocate_cleared<std::uint64_t>(1, "signals"); });
  bare_ping_pong bare;
  std::uint64_t base = 0;
  const auto ours = [&] {
    const double seconds = ranks.run([&](world& w) {
      block self(w);
      const symmetric<std::uint64_t>& counter = counters[w.rank()];
      const int peer = 1 - w.rank();
      for (std::uint64_t i = base + 1; i <= base + round_trips; ++i) {
        if (w.rank() == 0) signal(self, counter.at(peer), i);
        wait_until(self, counter.local(), i, {.name = "ping-pong", .peer = peer});
        if (w.rank() == 1) signal(self, counter.at(peer), i);
      }
    });
    base += round_trips;
    return seconds / static_cast<double>(round_trips);
  };
  const auto reference = [&] {
    const double seconds = ranks.run([&](world& w) { bare.play(w.rank() == 0); });
    bare.advance();
    return seconds / static_cast<double>(round_trips);
  };
  take_turns(c, options, ours, reference);
  return c;
}

}  // namespace

double comparison::ratio() const noexcept {
  return compares_rates ? reference_time.median / time.median : time.median / reference_time.median;
}

bool comparison::met() const noexcept { return compares_rates ? ratio() >= bar : ratio() <= bar; }

std::string comparison::bar_text() const {
  return fmt::format("{} {:.2f}", compares_rates ? "at least" : "at most", bar);
}

std::vector<comparison> run_host_suite(const host_suite_options& options) {
  return {put_beside_memcpy(options), fused_beside_library(options),
          signal_beside_atomics(options)};
}

int steps_of(const host_suite_options& options) { return comparisons * options.repeats; }

}  // namespace untax::bench

#include "bench/suites/own_machine.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <untax/core/error.hpp>
#include <untax/memory/host_memory.hpp>
#include <untax/rma/copy.hpp>
#include <untax/taxes/machine.hpp>
#include <untax/taxes/timing.hpp>

#include "bench/suites/gpu_need.hpp"
#include "bench/suites/host.hpp"
#include "bench/suites/seconds_of.hpp"
#include "bench/suites/sleeping_ranks.hpp"
#include "engines/host/team.hpp"

namespace untax::bench {
namespace {

using timing::machine_numbers;

constexpr int most_cores = 64;
constexpr std::int64_t moved_bytes = 32'000'000;
constexpr std::size_t read_words = std::size_t{1} << 25U;
constexpr int launches_of_a_repeat = 10;
constexpr std::int64_t small = 1024;  // bytes of a collective

/// Sets a number, clamped to the limits of descriptions, and its source.
void set(timing::machine& m, double machine_numbers::*what, double value, std::string from) {
  const auto kind = std::ranges::find(timing::number_kinds, what, &timing::number_kind::value);
  m.numbers.*what = std::clamp(value, kind->least, kind->most);
  m.sources.insert_or_assign(std::string(kind->key), std::move(from));
}

/// The median of the results of `once`, after a first call that does not count.
template <class Once>
double median_of(int repeats, Once&& once) {
  std::vector<double> times;
  (void)once();
  for (int i = 0; i < repeats; ++i) times.push_back(once());
  return spread_of(std::move(times)).median;
}

/// The bytes per second that one core reads from memory.
double read_rate(int repeats) {
  const std::vector<std::uint64_t> words(read_words, 1);
  return static_cast<double>(read_words * sizeof(std::uint64_t)) / median_of(repeats, [&] {
           std::uint64_t sum = 0;
           const double seconds = seconds_of(
               [&] { sum = std::accumulate(words.begin(), words.end(), std::uint64_t{0}); });
           if (sum == read_words) return seconds;
           throw error(errc::internal,
                       fmt::format("the sum of {} words that are all 1 is {}", read_words, sum));
         });
}

struct copy_rates {
  double put = 0;
  double get = 0;
};

/// The bytes per second of each rank, all at once: to the next rank, and from it.
copy_rates rates_of_all(int ranks, int repeats) {
  world_options settings;
  settings.heap_bytes = std::size_t{moved_bytes} + (std::size_t{1} << 20U);
  sleeping_ranks all(ranks, settings);
  std::vector<symmetric<std::byte>> landing(static_cast<std::size_t>(ranks));
  (void)all.run([&](world& w) {
    landing[static_cast<std::size_t>(w.rank())] = w.allocate<std::byte>(moved_bytes, "copies");
  });
  std::vector<std::vector<std::byte>> own(static_cast<std::size_t>(ranks),
                                          std::vector<std::byte>(moved_bytes));
  const auto rate = [&](bool puts) {
    return static_cast<double>(moved_bytes) / median_of(repeats, [&] {
             return all.run([&](world& w) {
               const auto self = static_cast<std::size_t>(w.rank());
               std::byte* const target = landing[self].at((w.rank() + 1) % ranks);
               std::byte* const source = own[self].data();
               copy(lone_thread(), puts ? target : source, puts ? source : target, moved_bytes);
             });
           });
  };
  return {rate(true), rate(false)};
}

struct launch_times {
  double whole = 0;  ///< until all workers have ended
  double begin = 0;  ///< until the last thread works
};

/// The times to launch two workers without work.
launch_times launches(launch_mode mode, int repeats) {
  host::team team(2, mode, "untax machine", [](const error&) {});
  std::vector<double> begins;
  const double whole = median_of(repeats * launches_of_a_repeat, [&] {
    const std::uint64_t called = host_memory::now();
    std::uint64_t works = called;
    const double seconds = seconds_of([&] {
      team.launch(2, [&](int worker) {
        if (worker == 1) works = host_memory::now();
      });
    });
    begins.push_back(static_cast<double>(works - called) * 1e-9);
    return seconds;
  });
  return {whole, spread_of(std::move(begins)).median};
}

/// The highest rate of the figures that `right` accepts; nothing if there is none.
template <class Predicate>
std::optional<double> best_rate(const rma_report& report, const Predicate& right) {
  std::optional<double> best;
  for (const rma_figure& f : report.figures) {
    if (f.bytes > 0 && right(f)) best = std::max(best.value_or(0), f.rate());
  }
  return best;
}
std::optional<double> least_time(const rma_report& report, std::string_view what) {
  std::optional<double> least;
  for (const rma_figure& f : report.figures) {
    if (f.table != rma_table::latency || f.what != what) continue;
    least = std::min(least.value_or(f.time.median), f.time.median);
  }
  return least;
}

/// The time of a collective by the library, or by the fastest other variant; null if it was not
/// measured.
const spread* time_of(const collective_report& report, collective_kind kind, std::int64_t bytes,
                      bool library) {
  const spread* least = nullptr;
  for (const collective_row& row : report.rows) {
    if (row.kind != kind || row.bytes != bytes) continue;
    for (const collective_figure& f : row.figures) {
      if (f.library != library || !f.time) continue;
      if (least == nullptr || f.time->median < least->median) least = &*f.time;
    }
  }
  return least;
}

}  // namespace

int steps_of(const own_machine_options& options) {
  return steps_of(host_suite_options{options.repeats, {}});
}

timing::machine measure_cores(const own_machine_options& options) {
  const machine_facts facts = read_machine();
  const int cores = std::min(facts.cores, most_cores);
  timing::machine m;
  m.name = fmt::format("{} cores of {}", cores, facts.cpu);
  m.device = facts.cpu;
  m.measured = m.cores = true;
  m.gpus = m.gpus_of_host = cores;
  m.links = timing::link_kind::host;

  const auto suite = run_host_suite({options.repeats, options.progress});
  const comparison& put_alone = suite[0];
  const comparison& library = suite[1];
  const comparison& there_and_back = suite[2];
  const copy_rates rates = rates_of_all(cores, options.repeats);
  const launch_times eager = launches(launch_mode::eager, options.repeats);
  const launch_times graph = launches(launch_mode::graph, options.repeats);
  const std::string median = fmt::format(", median of {}", options.repeats);
  const auto measured = [&](double machine_numbers::*what, double value, const std::string& how) {
    set(m, what, value, "measured here: " + how + median);
  };
  measured(&machine_numbers::flops, library.work / library.reference_time.median / library.threads,
           "a product in fp32 by OpenBLAS, of one thread");
  measured(&machine_numbers::memory_rate, read_rate(options.repeats), "words that a core adds up");
  measured(&machine_numbers::launch_eager, eager.whole, "two threads made and joined");
  measured(&machine_numbers::launch_graph, graph.whole, "two threads that wait, started and ended");
  measured(&machine_numbers::start, graph.begin, "until the second of two threads works");
  measured(&machine_numbers::link_rate, rates.put, "copies to the next rank, all at once");
  measured(&machine_numbers::read_rate, rates.get, "copies from the next rank, all at once");
  measured(&machine_numbers::host_rate, rates.put, "copies to the next rank, all at once");
  measured(&machine_numbers::block_rate, put_alone.work / put_alone.time.median,
           put_alone.name + " by one rank");
  measured(&machine_numbers::store, there_and_back.time.median / 2, "half of a signal and back");
  measured(&machine_numbers::host_store, there_and_back.time.median / 2,
           "half of a signal and back");
  measured(&machine_numbers::jitter, there_and_back.time.p90 - there_and_back.time.p10,
           "p90 less p10 of a signal and back");
  set(m, &machine_numbers::processors, 1, "chosen: a rank is a core");
  set(m, &machine_numbers::hertz, 1e9, "not used: no kernels of GPUs");
  for (const auto what : {&machine_numbers::release, &machine_numbers::look})
    set(m, what, 0, "measured here: part of store");
  for (const auto what : {&machine_numbers::copy_start, &machine_numbers::library_start,
                          &machine_numbers::library_hop, &machine_numbers::library_run})
    set(m, what, 0, "not used: neither copy engines nor collectives of a library");
  for (const auto what : {&machine_numbers::card_rate, &machine_numbers::card_store})
    set(m, what, 0, "not used: one host");
  return m;
}

timing::machine measure_gpus(const timing::machine& like, const device_survey& gpus,
                             const own_machine_options& options) {
  if (gpus.devices.empty()) throw error(errc::unsupported, gpus.problem);
  timing::machine m = like;
  for (auto& [key, from] : m.sources) from = fmt::format("of {}: {}", like.name, from);
  m.device = gpus.devices.front().name;
  m.gpus = m.gpus_of_host = static_cast<int>(gpus.devices.size());
  m.name = fmt::format("{} x {}", m.gpus, m.device);
  m.cards_of_host = 0;
  // The calibration of `like` is for another machine, and is stored beside the file of `like`.
  m.calibration.clear();
  m.judgement.clear();
  set(m, &machine_numbers::processors, gpus.devices.front().multiprocessors, "measured here: CUDA");
  gemm_suite_options gemm;
  gemm.repeats = options.repeats;
  gemm.sizes = {1, 8192};
  gemm.progress = options.progress;
  require_memory(gemm);
  take_numbers(m, run_gemm_suite(gemm));
  if (m.gpus < 2) return m;
  take_numbers(m, run_rma_suite({0, options.repeats, options.progress}));
  collective_suite_options collectives;
  collectives.repeats = options.repeats;
  collectives.kinds = {collective_kind::all_gather, collective_kind::all_reduce};
  collectives.sizes = {small, 2 * small};
  take_numbers(m, run_collective_suite(collectives));
  return m;
}

void take_numbers(timing::machine& m, const gemm_report& report) {
  double flops = 0;
  double bytes = 0;
  for (const gemm_row& row : report.rows) {
    flops = std::max(flops, row.flops());
    if (row.skinny()) bytes = std::max(bytes, row.weight_bytes());
  }
  if (flops > 0)
    set(m, &machine_numbers::flops, flops, "measured here: bench gemm, the quickest of many rows");
  if (bytes > 0)
    set(m, &machine_numbers::memory_rate, bytes, "measured here: bench gemm, weights of few rows");
}

void take_numbers(timing::machine& m, const rma_report& report) {
  const auto put = best_rate(report, [](const rma_figure& f) {
    return f.table == rma_table::blocks && f.what == "put" && f.method == "bulk";
  });
  const auto get = best_rate(report, [](const rma_figure& f) {
    return f.table == rma_table::all && f.what == "get" && f.blocks > 100;
  });
  const auto block = best_rate(report, [](const rma_figure& f) {
    return f.table == rma_table::blocks && f.what == "put" && f.method == "bulk" && f.blocks == 1;
  });
  const auto store = least_time(report, "16 bytes, one way");
  const auto behind = least_time(report, "16 bytes and signal, one way");
  if (put) set(m, &machine_numbers::link_rate, *put, "measured here: bench rma, put, bulk");
  if (get) set(m, &machine_numbers::read_rate, *get, "measured here: bench rma, get by all");
  if (block)
    set(m, &machine_numbers::block_rate, *block, "measured here: bench rma, put, bulk, 1 block");
  if (!store) return;
  set(m, &machine_numbers::store, *store, "measured here: bench rma, 16 bytes, one way");
  set(m, &machine_numbers::look, 0, "measured here: bench rma, part of one way");
  if (behind)
    set(m, &machine_numbers::release, *behind - *store,
        "measured here: bench rma, 16 bytes and signal, less a store");
}

void take_numbers(timing::machine& m, const collective_report& report) {
  const spread* own = time_of(report, collective_kind::all_gather, small, false);
  const spread* library = time_of(report, collective_kind::all_gather, small, true);
  const spread* twice = time_of(report, collective_kind::all_gather, 2 * small, true);
  const spread* summed = time_of(report, collective_kind::all_reduce, small, true);
  if (own != nullptr) {
    set(m, &machine_numbers::start, own->median - m.numbers.store,
        "measured here: bench collectives, all_gather of 1 KB, less a store");
    set(m, &machine_numbers::jitter, own->p90 - own->p10,
        "measured here: bench collectives, p90 less p10 of 1 KB");
  }
  if (library != nullptr)
    set(m, &machine_numbers::library_start, library->median,
        "measured here: bench collectives, all_gather of 1 KB by NCCL");
  if (twice != nullptr && summed != nullptr)
    set(m, &machine_numbers::library_hop, summed->median - twice->median,
        "measured here: bench collectives, all_reduce of 1 KB less all_gather of 2 KB, by NCCL");
}

}  // namespace untax::bench

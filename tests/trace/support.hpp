#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <untax/flow/fault_tap.hpp>
#include <untax/trace/account.hpp>
#include <untax/trace/session.hpp>
#include <untax/world/launch.hpp>

#include "ops/common/registry.hpp"
#include "ops/common/workload.hpp"

namespace untax::testing {

inline constexpr gemm_problem traced_problem{.m = 24, .n = 40, .k = 48};

/// Runs an operator so often, with `before` in front of each rank's call, and returns the trace.
inline trace_record traced_runs(
    std::string_view name, const operator_options& options, int ranks, std::uint64_t epochs,
    const std::function<void(int rank, std::uint64_t epoch)>& before = {},
    const gemm_problem& problem = traced_problem, std::size_t events = 1 << 14) {
  start_trace({.path = "", .events_per_worker = events});
  world_options settings;
  settings.heap_bytes = heap_for(problem, ranks) * 2;
  run_threads(
      ranks,
      [&](world& w) {
        const trace_label label(std::string(name_of(options.how)));
        workload load(w, operator_named(name), problem, options, 1);
        for (std::uint64_t epoch = 1; epoch <= epochs; ++epoch) {
          w.barrier();
          if (before) before(w.rank(), epoch);
          load.run();
        }
      },
      settings);
  return stop_trace();
}

/// Options of a pattern with so many workers that each has a peer to wait for.
inline operator_options traced_way(pattern how) {
  operator_options options;
  options.how = how;
  options.workers = 2;
  options.senders = 1;
  options.tile_m = 5;
  options.tile_n = 8;
  return options;
}

inline const std::vector<pattern>& traced_patterns() {
  static const std::vector<pattern> patterns = {
      pattern::bulk_library, pattern::bulk_synchronous, pattern::producer_consumer,
      pattern::fused_sequential, pattern::fused_specialized};
  return patterns;
}

// Faults that are planted in one of several runs, and what a trace says of that run.

inline constexpr std::uint64_t epochs = 4;
inline constexpr std::uint64_t struck_epoch = 3;

/// The largest cause of the run that the fault struck.
struct diagnosis {
  run_account run;
  path_piece worst;
  double seconds = 0;
};

inline diagnosis diagnosed(const trace_record& record) {
  const auto accounts = accounts_of(record);
  for (const run_account& run : accounts.at(0).runs) {
    if (run.epoch != static_cast<std::int64_t>(struck_epoch)) continue;
    const auto length = [](const path_piece& p) { return p.end - p.begin; };
    const path_piece worst = std::ranges::max(run.pieces, {}, length);
    return {run, worst, static_cast<double>(length(worst)) * 1e-9};
  }
  ADD_FAILURE() << "the run that was struck is not in the record";
  return {};
}

/// A launch of rank 1 takes long.
class late_launch final : public fault_tap {
 public:
  explicit late_launch(std::chrono::microseconds late) : late_(late) {}
  void launched(const fault_site& site) override {
    if (site.rank == 1 && site.epoch == struck_epoch && site.kernel == 0 && site.worker == 0)
      std::this_thread::sleep_for(late_);
  }

 private:
  std::chrono::microseconds late_;
};

}  // namespace untax::testing

#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

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
  static const std::vector<pattern> all = {pattern::bulk_library, pattern::bulk_synchronous,
                                           pattern::producer_consumer, pattern::fused_sequential,
                                           pattern::fused_specialized};
  return all;
}

}  // namespace untax::testing

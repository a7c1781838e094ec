#pragma once

#include <algorithm>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <untax/flow/fault_plan.hpp>

#include "ops/common/registry.hpp"
#include "ops/common/workload.hpp"

namespace untax::testing {

/// One way to run one operator on a problem so small that it takes no time, and so oddly cut that
/// every rank has several tiles.
struct faulty_case {
  operator_entry entry;
  gemm_problem problem;
  operator_options options;
  int world = 2;

  [[nodiscard]] std::string describe() const {
    return fmt::format("{} W {} gather {} {} {}", entry.name, world, name_of(problem.gather),
                       name_of(options.how), name_of(options.move));
  }
};

/// Every pattern that has signals, in each direction that the operator knows.
inline std::vector<operator_options> ways_of(const operator_entry& entry) {
  std::vector<operator_options> ways;
  for (const pattern how : {pattern::bulk_synchronous, pattern::producer_consumer,
                            pattern::fused_sequential, pattern::fused_specialized}) {
    for (const direction move : {direction::push, direction::pull}) {
      const bool pulls =
          entry.gathers && (how == pattern::producer_consumer || how == pattern::fused_specialized);
      if (move == direction::pull && !pulls) continue;
      operator_options options;
      options.how = how;
      options.move = move;
      options.workers = 2;
      options.senders = 1;
      options.tile_m = 3;
      options.tile_n = 4;
      options.panel_k = 3;
      ways.push_back(options);
    }
  }
  return ways;
}

/// Every operator, gather axis and way, with each of these numbers of ranks.
inline std::vector<faulty_case> all_cases(const std::vector<int>& worlds) {
  std::vector<faulty_case> cases;
  for (const operator_entry& entry : operators()) {
    for (const operator_options& options : ways_of(entry)) {
      for (const gather_axis gather : {gather_axis::rows, gather_axis::k}) {
        if (gather == gather_axis::k && !entry.gathers) continue;
        const gemm_problem problem{.m = 13, .n = 11, .k = 12, .type = dtype::f32, .gather = gather};
        for (const int world : worlds) cases.push_back({entry, problem, options, world});
      }
    }
  }
  return cases;
}

inline std::vector<fault_site> signals_among(const std::vector<fault_site>& sites) {
  std::vector<fault_site> signals;
  std::copy_if(sites.begin(), sites.end(), std::back_inserter(signals), [](const fault_site& s) {
    return s.verb == channel_verb::publish || s.verb == channel_verb::retire;
  });
  return signals;
}

/// At most `count` of these, chosen by the seed.
template <class T>
std::vector<T> sample(std::vector<T> from, std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::shuffle(from.begin(), from.end(), random);
  if (from.size() > count) from.resize(count);
  return from;
}

}  // namespace untax::testing

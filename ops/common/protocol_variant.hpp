#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "engines/model/scenario.hpp"
#include "engines/schedule/plan.hpp"

namespace untax {

/// A problem with a plan, for a number of ranks.
struct schedule_case {
  std::string name;
  std::function<std::vector<schedule::rank_plan>()> plans;  ///< of all ranks
};

/// One configuration of an operator, which is checked as a protocol of its own.
struct protocol_variant {
  std::string name;  ///< "all_gather_gemm fused_specialized, gather k, pull"
  /// The problems and plans for which its schedule is proved; `quick` leaves most of them out.
  std::function<std::vector<schedule_case>(int ranks, bool quick)> schedule_cases;
  /// Tiny problems on which its executions are explored. Together they have every kind of step that
  /// the variant has, and every room is used at least twice.
  std::function<std::vector<model::scenario>(int ranks)> scenarios;
};

/// A problem with a plan in a check grid.
template <class Problem, class Plan>
struct grid_case {
  Problem problem;
  Plan plan;  ///< of rank 0
  /// Rooms lie in two sets at most, so this many epochs use every room twice.
  std::uint64_t epochs = 4;
};

/// The steps of all ranks. `checked` describes a grid.
template <class Grid, class Case>
[[nodiscard]] std::vector<schedule::rank_plan> plans_of(const Grid& grid, const Case& c) {
  std::vector<schedule::rank_plan> plans;
  for (int rank = 0; rank < c.plan.world; ++rank) {
    auto own = c.plan;
    own.rank = rank;
    plans.push_back(grid.steps(c, own));
  }
  return plans;
}

/// A variant of an operator, with its cases. `Grid` has
///
///   name()                    of the variant
///   name_of(c)                of a case
///   schedules(ranks, quick)   cases whose schedules are proved
///   explored(ranks)           tiny ones whose executions are explored
///   steps(c, plan)            rank_plan of the rank of a plan
///   values(c)                 scenario: what goes into an explored case, and what comes out
template <class Grid>
[[nodiscard]] protocol_variant checked(const Grid& grid) {
  const auto schedules = [grid](int ranks, bool quick) {
    std::vector<schedule_case> cases;
    for (const auto& c : grid.schedules(ranks, quick))
      cases.push_back({grid.name_of(c), [grid, c] { return plans_of(grid, c); }});
    return cases;
  };
  const auto scenarios = [grid](int ranks) {
    std::vector<model::scenario> cases;
    for (const auto& c : grid.explored(ranks)) {
      model::scenario s = grid.values(c);
      s.name = grid.name_of(c);
      s.plans = plans_of(grid, c);
      cases.push_back(std::move(s));
    }
    return cases;
  };
  return {grid.name(), schedules, scenarios};
}

/// `make(size, cut)` for each size with each cut.
template <class Size, class Cut, class Make>
[[nodiscard]] auto crossed(const std::vector<Size>& sizes, const std::vector<Cut>& cuts,
                           const Make& make) {
  std::vector<decltype(make(sizes.front(), cuts.front()))> cases;
  for (const Size& size : sizes) {
    for (const Cut& cut : cuts) cases.push_back(make(size, cut));
  }
  return cases;
}

}  // namespace untax

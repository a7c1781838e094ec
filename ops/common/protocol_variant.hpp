#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engines/model/scenario.hpp"
#include "engines/schedule/plan.hpp"

namespace untax {

/// A problem with a plan, for a number of ranks.
struct schedule_case {
  std::string name;
  std::function<std::vector<schedule::rank_plan>()> plans;  ///< of all ranks
};

/// One way to carry an operator out, which is checked as a protocol of its own.
struct protocol_variant {
  std::string name;  ///< "all_gather_gemm fused_specialized, gather k, pull"
  /// The problems and plans for which its schedule is proved; `quick` leaves most of them out.
  std::function<std::vector<schedule_case>(int ranks, bool quick)> schedule_cases;
  /// Tiny problems on which its executions are explored. Together they have every kind of step that
  /// the variant has, and every room is used at least twice.
  std::function<std::vector<model::scenario>(int ranks)> scenarios;
};

}  // namespace untax

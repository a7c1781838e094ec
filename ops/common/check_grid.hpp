#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engines/model/scenario.hpp"
#include "engines/schedule/plan.hpp"
#include "ops/common/workload.hpp"

namespace untax {

/// One way to carry an operator out: a protocol of its own as far as checking is concerned.
struct protocol_variant {
  const operator_entry* entry = nullptr;
  pattern how = pattern::fused_sequential;
  gather_axis gather = gather_axis::rows;
  direction move = direction::push;

  /// "all_gather_gemm fused_specialized, gather k, pull".
  [[nodiscard]] std::string name() const;
};

/// Every pattern (but `automatic`, which is one of the others), gather axis and direction that the
/// operator has.
[[nodiscard]] std::vector<protocol_variant> variants_of(const operator_entry& entry);

/// A variant on one problem, cut in one way, for a number of ranks.
struct grid_case {
  protocol_variant what;
  gemm_problem problem;
  gemm_plan plan;  ///< of rank 0
  std::uint64_t epochs = 1;

  /// "all_gather_gemm fused_sequential, gather rows: 3 ranks, m 37, n 53, k 72, ...".
  [[nodiscard]] std::string name() const;
};

/// The problems and plans for which the schedule of a variant is proved: a single element, shapes
/// that no number of ranks divides, shapes with fewer rows or columns than ranks, each cut into one
/// tile, several, and many, for one worker and for several. `quick` leaves most of them out.
[[nodiscard]] std::vector<grid_case> schedule_cases(const protocol_variant& variant, int ranks,
                                                    bool quick = false);

/// The tiny problems on which the executions of a variant are explored. Together they have every
/// kind of step that the variant has, and every room is used at least twice.
[[nodiscard]] std::vector<grid_case> model_cases(const protocol_variant& variant, int ranks);

/// The plans of all ranks.
[[nodiscard]] std::vector<schedule::rank_plan> plans_of(const grid_case& c);

/// The same with inputs, and the result they have to give.
[[nodiscard]] model::scenario scenario_of(const grid_case& c);

}  // namespace untax

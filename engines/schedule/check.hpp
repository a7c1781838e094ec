#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engines/schedule/plan.hpp"
#include "engines/schedule/walk.hpp"

namespace untax::schedule {

/// The result of `check_schedule`.
struct schedule_report {
  std::vector<std::string> problems;  ///< empty: the schedule is correct
  int ranks = 0;
  std::uint64_t steps = 0;  ///< carried out, over all ranks and epochs
  std::uint64_t waits = 0;  ///< counter values that were waited for

  [[nodiscard]] bool ok() const noexcept { return problems.empty(); }
};

/// Proves, for the plans of all ranks (plan r belongs to rank r) and for any timing of them, that
/// * it ends: the graph of program order, stages and epochs of a rank, publish -> acquire and
///   retire -> reserve has no cycle, and every wait has the signal it needs, from the one writer of
///   the counter;
/// * nothing races: any two accesses to the same element, one of them a write, are ordered by that
///   graph, those of the caller between epochs included;
/// * it is complete: every element of every c is completed exactly once in each epoch, from chains
///   of multiplications that cover the columns of b exactly once, and sums that take each rank
///   once, in rank order, reading only data that was written in the same epoch;
/// * every rectangle and every counter index is within bounds.
///
/// Reports all faults; the later checks run only if the earlier ones found nothing.
///
/// With a filter: whether all that still holds if only the verbs that the filter accepts order
/// accesses.
[[nodiscard]] schedule_report check_schedule(std::span<const rank_plan> plans,
                                             const ordering_filter& orders = {});

}  // namespace untax::schedule

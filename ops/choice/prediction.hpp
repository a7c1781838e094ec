#pragma once

#include <string>
#include <vector>

#include "ops/choice/table.hpp"

namespace untax {

/// What a table lets expect of each pattern at one problem.
struct prediction {
  struct expected {
    pattern how = pattern::bulk_library;
    double seconds = 0;
  };
  std::vector<expected> times;            ///< the least first
  std::vector<const tuning_entry*> from;  ///< of the table, the nearest first
  bool exact = false;                     ///< the problem itself was measured
};

/// "fused_specialized 101.2 us, bulk_library 120.0 us".
[[nodiscard]] std::string text_of(const std::vector<prediction::expected>& times);

/// Which entries serve for `problem`: those of its operator, gather and rank count, or, where there
/// are none, of the rank count that is nearest (by ratio; of two the smaller); 0 if there are none
/// at all.
[[nodiscard]] int nearest_ranks(const tuning_table& table, const tuned_problem& problem);
/// Whether one rank count is nearer than another one to a third, by ratio; of two that are as near,
/// the smaller is.
[[nodiscard]] bool nearer_ranks(int one, int other, int to);

/// What the cost model of the entries of `ranks` ranks says, corrected by what it is wrong at the
/// nearest of them. What is interpolated is the logarithm of a measured time over the model's:
///
/// 1. entries with the same n and k are a line: along it, linearly in log m between the two
///    entries that enclose the problem's m, and constant beyond the ends;
/// 2. of the four lines that are nearest in (log n, log k), the mean, weighted by 1 / distance^2;
///    a line that has the problem's n and k stands alone.
///
/// Patterns that the nearest line does not have are left out. `times` is empty if there are no
/// entries.
[[nodiscard]] prediction predict(const tuning_table& table, const tuned_problem& problem,
                                 int ranks);

}  // namespace untax

#pragma once

#include <string>
#include <vector>

#include "ops/choice/table.hpp"

namespace untax {

/// The expected time of each pattern for one problem, from a table.
struct prediction {
  struct expected {
    pattern how = pattern::bulk_library;
    double seconds = 0;
  };
  std::vector<expected> times;            ///< the least first
  std::vector<const tuning_entry*> from;  ///< entries that were used, the nearest first
  bool exact = false;                     ///< the problem itself was measured
};

/// "fused_specialized 101.2 us, bulk_library 120.0 us".
[[nodiscard]] std::string text_of(const std::vector<prediction::expected>& times);

/// The rank count of the entries to use for `problem`, of its operator and gather: its own or, if
/// there are none, the nearest one (by ratio; of two the smaller). 0 if there are no entries at
/// all.
[[nodiscard]] int nearest_ranks(const tuning_table& table, const tuned_problem& problem);
/// Whether rank count `first` is nearer than `other` to `to`, by ratio; of two that are equally
/// near, the smaller is nearer.
[[nodiscard]] bool nearer_ranks(int first, int other, int to);

/// The prediction of the cost model of the entries of `ranks` ranks, corrected by its errors at the
/// nearest of them. The logarithm of a measured time over the model's is interpolated:
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

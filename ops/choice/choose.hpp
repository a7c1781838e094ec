#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <untax/core/environment.hpp>

#include "ops/choice/table.hpp"

namespace untax {

/// The patterns that `automatic` stands for, for one problem.
struct choice {
  std::vector<pattern> order;  ///< the best first; if one is refused, the next is taken
  /// Patterns that may be the quickest, the likeliest first; only one if the problem itself was
  /// measured.
  std::vector<pattern> likely;
  std::string reason;  ///< what was considered, and why; a sentence for `explain()`
};

/// Appends those of `others` that `order` lacks.
void append_others(std::vector<pattern>& order, std::span<const pattern> others);

/// Chooses by the first of these that has entries of the problem's operator and gather:
///
/// 1. `own`, if it is not null, for the same rank count;
/// 2. one of `tables` that was measured on `device`, for the same rank count;
/// 3. what was measured with the nearest rank count: in `own` if it has any entry, or else on
///    `device`, or else on another one. The cost model of those entries is used for this problem's
///    rank count.
///
/// bulk_library is always in the order, at its end where it was not measured. Likely are patterns
/// that are expected to take at most 1.5 times as long as the first, all where nothing was measured
/// with so many ranks on `device`, and every pattern where there are no entries.
[[nodiscard]] choice choose(const tuned_problem& problem, std::string_view device,
                            const tuning_table* own, const std::vector<tuning_table>& tables);

/// The same with the tables that are compiled in, and that of UNTAX_TUNE_TABLE. Throws
/// `invalid_argument` if that cannot be read.
[[nodiscard]] choice choose(const tuned_problem& problem, std::string_view device,
                            const environment& env = environment());

}  // namespace untax

#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <untax/core/environment.hpp>

#include "ops/choice/prediction.hpp"
#include "ops/choice/table.hpp"

namespace untax {

/// The patterns that `automatic` stands for, for one problem.
struct choice {
  std::vector<pattern> order;  ///< the best first; if one is refused, the next is taken
  /// Patterns that may be the quickest, the likeliest first; only one if the problem itself was
  /// measured with these kernels, and rows do not vary.
  std::vector<pattern> likely;
  std::vector<prediction::expected> times;  ///< from a table; empty if none has the operator
  std::string reason;  ///< the considered patterns and the reasons; a sentence for `explain()`
};

/// Appends the patterns of `others` that `order` lacks.
void append_others(std::vector<pattern>& order, std::span<const pattern> others);

/// The inputs of a choice besides the problem.
struct choice_sources {
  std::string_view device;               ///< the name of the GPU
  std::string_view kernels;              ///< the hash of the kernels that run here
  const tuning_table* own = nullptr;     ///< the user's; may be null
  std::span<const tuning_table> tables;  ///< all other tables
  /// The patterns to try if no table has the operator, the best first.
  std::span<const pattern> usual;
  /// Whether runs may have fewer rows, for which a table of the problem itself has no times.
  bool rows_vary = false;
};

/// Chooses by the first of these that has entries of the problem's family:
/// 1. `own`, if it is not null, for the same rank count;
/// 2. one of `tables` that was measured on `device`, for the same rank count, and with these
///    kernels if there is one;
/// 3. the entries with the nearest rank count: in `own` if it has any entry, or else on `device`,
///    or else on another device. The cost model of those entries is used for this problem's rank
///    count.
///
/// bulk_library is always in the order, at its end if it was not measured. Likely patterns are
/// those that are expected to take at most 1.5 times as long as the first, and usual ones that the
/// table does not have for any problem of the family; if rows vary, bulk_library, too. If the table
/// is of other kernels, bulk_library and the first of `usual` are likely, too; if nothing was
/// measured with this many ranks on `device`, all patterns of the table are. Without entries the
/// usual patterns and bulk_library are likely, or every pattern if none is usual.
[[nodiscard]] choice choose(const tuned_problem& problem, const choice_sources& from);

/// The user's table: that of UNTAX_TUNE_TABLE. Throws `invalid_argument` if it cannot be read.
[[nodiscard]] std::optional<tuning_table> own_table(const environment& env);

}  // namespace untax

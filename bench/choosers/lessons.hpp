#pragma once

#include <span>
#include <vector>

#include <untax/select/selector.hpp>
#include <untax/select/table.hpp>

#include "ops/choice/table.hpp"

namespace untax::bench {

/// The features of trees over problems.
enum class lesson_kind {
  sizes,    ///< sizes, rates and their ratios
  expected  ///< also expected times by the tables, relative to the fastest
};

/// Problems as records of untax/select: features of each, seconds of each pattern.
class lessons {
 public:
  /// Rates and expected times are those of `tables`, which has to outlive this object.
  lessons(lesson_kind kind, const std::vector<tuning_table>& tables);

  /// All entries of the tables. Their expected times come from entries of other shapes (n, k).
  [[nodiscard]] select::table all() const;
  /// The features of a problem that is in none of the tables.
  [[nodiscard]] std::vector<double> features(const tuned_problem& problem) const;

  /// The patterns, in the order of candidates.
  [[nodiscard]] static std::span<const pattern> candidates() noexcept;

 private:
  [[nodiscard]] std::vector<double> features(const tuned_problem& problem,
                                             const std::vector<tuning_table>& from) const;

  lesson_kind kind_;
  const std::vector<tuning_table>& tables_;
  select::schema what_;
};

/// The tables without entries of this n and k, and without tables that are then empty.
[[nodiscard]] std::vector<tuning_table> without_shape(const std::vector<tuning_table>& tables,
                                                      const tuned_problem& like);

/// The expected time of each pattern, the least first, by the table with the nearest number of
/// ranks. Empty if no table has the family of the problem.
[[nodiscard]] std::vector<std::pair<pattern, double>> expected_times(
    const std::vector<tuning_table>& tables, const tuned_problem& problem);

}  // namespace untax::bench

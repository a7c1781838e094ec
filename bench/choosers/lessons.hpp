#pragma once

#include <span>
#include <vector>

#include <untax/select/selector.hpp>
#include <untax/select/table.hpp>

#include "ops/choice/table.hpp"

namespace untax::bench {

/// Which features trees over problems have.
enum class lesson_kind {
  sizes,    ///< sizes, rates and their ratios
  expected  ///< those, and what the tables let expect of each pattern beside the quickest
};

/// Problems as records of untax/select: features of each, seconds of each pattern.
class lessons {
 public:
  /// `device` has the rates. Where patterns are expected, it is by `tables`.
  lessons(lesson_kind kind, const std::vector<tuning_table>& tables);

  /// All entries of the tables. What is expected of an entry is so by the entries of other n and k.
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

/// The tables without the entries of this n and k; without tables that had no others.
[[nodiscard]] std::vector<tuning_table> without_shape(const std::vector<tuning_table>& tables,
                                                      const tuned_problem& like);

/// What is expected of each pattern by the table whose rank count is nearest; the least first.
/// Empty where no table has the family.
[[nodiscard]] std::vector<std::pair<pattern, double>> expected_times(
    const std::vector<tuning_table>& tables, const tuned_problem& problem);

}  // namespace untax::bench

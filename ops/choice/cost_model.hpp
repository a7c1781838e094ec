#pragma once

#include <array>
#include <map>

#include "ops/choice/table.hpp"

namespace untax {

/// What a pattern takes, roughly: something fixed, so many times the arithmetic (or the reading of
/// the weights, whichever is longer), and so many times the transfers. The factors are those that
/// fit a table best; none is negative. What a pattern hides behind the arithmetic has a small
/// factor, what it waits for a large one.
class cost_model {
 public:
  /// Fits the entries of `table` of the problem's operator and gather with `ranks` ranks: the sum
  /// of the squared relative errors becomes as small as it can.
  cost_model(const tuning_table& table, const tuned_problem& problem, int ranks);

  /// Above 0, for any number of ranks. The model has to have the pattern.
  [[nodiscard]] double seconds(pattern how, const tuned_problem& problem) const;

 private:
  using terms = std::array<double, 3>;
  [[nodiscard]] terms terms_of(const tuned_problem& problem) const;

  device_rates rates_;
  std::map<pattern, terms> factors_;
};

}  // namespace untax

#pragma once

#include <array>
#include <map>

#include "ops/choice/table.hpp"

namespace untax {

/// A rough model of a pattern's time: a fixed time, a multiple of the arithmetic (or of reading the
/// weights, whichever is longer), and a multiple of the transfers. The factors are fitted to a
/// table; none is negative. The factor of transfers is small for a pattern that hides them behind
/// the arithmetic, and large for one that waits for them.
class cost_model {
 public:
  /// Fits the entries of `table` of the problem's operator and gather with `ranks` ranks: it
  /// minimises the sum of the squared relative errors.
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

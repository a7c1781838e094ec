#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <untax/taxes/report.hpp>

namespace untax {

/// The steps of the ablation, in order.
inline constexpr std::array<std::string_view, 5> step_ids = {"E0", "E1", "E2", "E3", "E4"};

using tax_member = double tax_breakdown::*;

/// The difference of two steps, which is one figure.
struct tax_span {
  std::string_view before, after;      ///< the steps
  std::vector<tax_member> parts = {};  ///< that lie between them: one, or several together
  tax_member figure = nullptr;         ///< the part, `joint`, or `stand_in`
};

/// The parts of E0 of one operation. Section 10 of docs/design.md has the rules.
struct tax_split {
  tax_breakdown parts;
  tax_breakdown chance;         ///< the uncertainty of each part
  std::vector<tax_span> spans;  ///< from E0 to E4, in order
  std::vector<stand_in_cost> stand_ins;
  std::vector<std::string> reasons;  ///< why parts are not separable
  bool bound_is_invalid = false;     ///< E4 is below the bound, beyond chance

  /// Whether a part has a figure of its own; for `joint` and `stand_in`, whether there is one.
  [[nodiscard]] bool separates(tax_member part) const;
};

[[nodiscard]] tax_split split_of(const tax_row& row, const tax_report& report);

/// "a", "a and b", "a, b and c".
[[nodiscard]] std::string enumerated(const std::vector<std::string>& items);

/// The title of a part: "launch tax".
[[nodiscard]] std::string_view title_of(tax_member part);

}  // namespace untax

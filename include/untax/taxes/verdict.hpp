#pragma once

#include <string>
#include <string_view>

#include <untax/taxes/report.hpp>

namespace untax {

/// Whether E4, the best fused patterns, takes less time than E1, the library in a graph.
enum class gain {
  faster,
  slower,
  none,    ///< the difference is smaller than its uncertainty
  unknown  ///< the uncertainty is not known, as with a single run of each, or a value is not finite
};

/// The state of the bound, which E4 should not be below.
enum class bound_state {
  absent,   ///< there is none
  holds,    ///< E4 is not below the bound
  reached,  ///< E4 is below the bound by no more than the uncertainty
  invalid,  ///< E4 is below the bound by more than that: compute or transfers alone were measured
            ///< too slow
  unknown   ///< E4 is below the bound, and the uncertainty is not known
};

/// The conclusions that the figures and their uncertainty allow. Text, JSON and HTML report these
/// and nothing else.
struct tax_verdict {
  gain fusing = gain::unknown;
  double speedup = 0;        ///< E1 / E4, if `fusing` is faster or slower; else 0
  double speedup_eager = 0;  ///< E0 / E4, likewise
  /// The tax that exceeds its uncertainty and is the largest. None if `fusing` is none: the parts
  /// between E1 and E4 cancel out then, and no tax is named.
  const tax_part* largest = nullptr;
  bool tells_taxes = false;         ///< whether any tax exceeds its uncertainty
  const tax_part* rival = nullptr;  ///< another tax that may be as large, by the uncertainty
  bound_state bound = bound_state::absent;
  double over_bound = 0;  ///< E4 / bound, if the bound holds or is reached; else 0
};

/// The conclusions for `parts` with the uncertainties `chance`, which are infinite if they are not
/// known.
[[nodiscard]] tax_verdict judge(const tax_breakdown& parts, const tax_breakdown& chance) noexcept;

/// The conclusions for the layer, or for the operator. The bound is invalid if that of one of its
/// operations is.
[[nodiscard]] tax_verdict verdict_of(const tax_report& report);
/// The conclusions for one operation, which was timed `repeats` times.
[[nodiscard]] tax_verdict verdict_of(const tax_row& row, const tax_report& report);

/// The name as in JSON: "faster", "holds".
[[nodiscard]] std::string_view name_of(gain fusing) noexcept;
[[nodiscard]] std::string_view name_of(bound_state bound) noexcept;

/// Whether the uncertainty of a value is at least as large as the value, so that its sign means
/// nothing.
[[nodiscard]] bool is_doubtful(double value, double chance) noexcept;

/// The text of E4 / bound: "1.25", "~0.98" if E4 is below a bound that it reaches, "invalid",
/// "unknown", or nothing.
[[nodiscard]] std::string over_bound_text(const tax_verdict& verdict);
/// The text of the gain: "1.52 times as fast as E1, 1.64 times as fast as E0", "fusing loses
/// here", ...
[[nodiscard]] std::string gain_text(const tax_verdict& verdict);
/// One sentence that says whether something could be faster than the bound.
[[nodiscard]] std::string bound_text(const tax_verdict& verdict);

/// The operations whose bound is invalid: "qkv and attention", or "".
[[nodiscard]] std::string invalid_bounds(const tax_report& report);

}  // namespace untax

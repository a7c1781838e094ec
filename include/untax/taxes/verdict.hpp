#pragma once

#include <string>
#include <string_view>

#include <untax/taxes/report.hpp>

namespace untax {

/// Whether E4, the best fused patterns, takes less time than E0.
enum class gain {
  faster,
  slower,
  none,    ///< the difference is smaller than its uncertainty
  unknown  ///< of one run each nobody knows the uncertainty, or a figure is no number
};

/// What became of the bound, which E4 should not be below.
enum class bound_state {
  absent,   ///< there is none
  holds,    ///< E4 is not below it
  reached,  ///< E4 is below it by no more than the uncertainty
  invalid,  ///< E4 is below it by more: compute or transfers alone were measured too slow
  unknown   ///< E4 is below it, and nobody knows by how much chance
};

/// What may be said of figures, given how far chance may have moved them. Text, JSON and HTML say
/// this and nothing else.
struct tax_verdict {
  gain fusing = gain::unknown;
  double speedup = 0;                 ///< E0 / E4, where `fusing` is faster or slower; else 0
  const tax_part* largest = nullptr;  ///< the tax that is clearly there and larger than the others
  const tax_part* rival = nullptr;    ///< a tax that chance may make as large as `largest`
  bound_state bound = bound_state::absent;
  double over_bound = 0;  ///< E4 / bound, where that holds or is reached; else 0
};

/// `chance` is infinite where it is not known.
[[nodiscard]] tax_verdict judge(const tax_breakdown& parts, const tax_breakdown& chance) noexcept;

/// Of the layer, or of the operator. Its bound is invalid where that of an operation is.
[[nodiscard]] tax_verdict verdict_of(const tax_report& report);
/// Of one operation.
[[nodiscard]] tax_verdict verdict_of(const tax_row& row, int repeats);

/// "faster", "holds": as in JSON.
[[nodiscard]] std::string_view name_of(gain fusing) noexcept;
[[nodiscard]] std::string_view name_of(bound_state bound) noexcept;

/// Whether chance moves a figure by more than its size, so that its sign means nothing.
[[nodiscard]] bool is_doubtful(double value, double chance) noexcept;

/// "1.25", "~0.98" where E4 is below a bound that it reaches, "invalid", "unknown", or nothing.
[[nodiscard]] std::string over_bound_text(const tax_verdict& verdict);
/// "1.64 times as fast", "fusing loses here", ...
[[nodiscard]] std::string gain_text(const tax_verdict& verdict);
/// One sentence: whether something could be faster than the bound.
[[nodiscard]] std::string bound_text(const tax_verdict& verdict);

/// Operations whose bound is invalid: "qkv and attention", or "".
[[nodiscard]] std::string invalid_bounds(const tax_report& report);

}  // namespace untax

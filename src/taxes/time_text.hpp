#pragma once

#include <string>

namespace untax {

/// The unit in which a group of times is shown, so that they can be compared at a glance.
struct time_unit {
  double per_second = 1;
  const char* name = "s";    ///< in plain ASCII
  const char* symbol = "s";  ///< with a micro sign
  int decimals = 2;
};

/// The unit that shows `seconds`, the largest of a group, with three or four digits before or after
/// the point.
[[nodiscard]] time_unit unit_for(double seconds);

/// `seconds` in `unit` without its name: "12.3". A negative time has a minus sign; what rounds to
/// nothing has none.
[[nodiscard]] std::string in_unit(double seconds, const time_unit& unit);

/// "12.3 ms".
[[nodiscard]] std::string with_unit(double seconds, const time_unit& unit);

/// 0.1234 as "12.3"; what rounds to nothing has no sign.
[[nodiscard]] std::string in_percent(double share);

}  // namespace untax

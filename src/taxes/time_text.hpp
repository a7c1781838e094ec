#pragma once

#include <string>
#include <string_view>

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

/// `seconds` in `unit` without its name: "12.3". A negative time has a minus sign, unless it is
/// rounded to zero.
[[nodiscard]] std::string in_unit(double seconds, const time_unit& unit);

/// "12.3 ms".
[[nodiscard]] std::string with_unit(double seconds, const time_unit& unit);

/// 0.1234 as "12.3"; a share that is rounded to zero has no sign.
[[nodiscard]] std::string in_percent(double share);

/// `text` as HTML shows it, inside an element or a quoted attribute.
[[nodiscard]] std::string escaped(std::string_view text);

/// A time with a true minus sign, which lines up with the digits; without its unit.
[[nodiscard]] std::string figure(double seconds, const time_unit& unit);

/// As `figure`, with the unit, kept on one line.
[[nodiscard]] std::string figure_with_unit(double seconds, const time_unit& unit);

/// 0.123 as "12.3 %".
[[nodiscard]] std::string percent(double share);

/// "bound" as "Bound".
[[nodiscard]] std::string capitalised(std::string_view text);

}  // namespace untax

#pragma once

#include <string>
#include <string_view>

#include "time_text.hpp"

namespace untax {

/// `text` as HTML shows it, inside an element or a quoted attribute.
[[nodiscard]] std::string escaped(std::string_view text);

/// A time with a true minus sign, which lines up with the digits; without its unit.
[[nodiscard]] std::string figure(double seconds, const time_unit& unit);

/// The same with its unit, kept on one line.
[[nodiscard]] std::string figure_with_unit(double seconds, const time_unit& unit);

/// 0.123 as "12.3 %".
[[nodiscard]] std::string percent(double share);

/// "bound" as "Bound".
[[nodiscard]] std::string capitalised(std::string_view text);

}  // namespace untax

#pragma once

#include <string_view>

namespace untax {

/// The style sheet of the HTML report: light and dark, wide and narrow, screen and paper.
extern const std::string_view report_style;

}  // namespace untax

#pragma once

#include <string>
#include <string_view>

#include <untax/taxes/report.hpp>

namespace untax {

/// The style sheet of the HTML report: light and dark, wide and narrow, screen and paper.
extern const std::string_view report_style;

/// One run of E1 and one of E4 of an operation, one below the other on the same scale, as HTML:
/// ranks are rows, and the arrow of a signal shows when the mouse points at its wait. Zooming takes
/// no script. Empty for a report without timelines.
[[nodiscard]] std::string timeline_section(const tax_report& report);

}  // namespace untax

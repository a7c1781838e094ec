#pragma once

#include <string_view>
#include <vector>

#include <untax/taxes/report.hpp>

namespace untax {

/// One bar of a waterfall, from E0 down to the bound.
struct waterfall_bar {
  std::string_view key;    ///< "total" or the key of a part
  std::string_view title;  ///< "launch tax"
  double from = 0;         ///< where the bar before it ended, as a share of the picture's width
  double to = 0;           ///< where this bar ends
  double seconds = 0;      ///< negative for a step that should have been faster and was not
  double uncertain = 0;    ///< seconds by which chance may have moved it; 0 for the total
  bool separable = true;   ///< whether there is a figure, and a bar

  [[nodiscard]] double low() const noexcept { return from < to ? from : to; }
  [[nodiscard]] double width() const noexcept { return from < to ? to - from : from - to; }
};

/// The total and its parts, in the order in which the ablation subtracts them from E0. All bars lie
/// between 0 and 1; the bound ends at 0. `title_of` chooses which of a part's names the bars have.
/// They are of the operation `row`, or if that is null of an average layer.
[[nodiscard]] std::vector<waterfall_bar> waterfall_bars(const tax_report& report,
                                                        const tax_row* row,
                                                        std::string_view tax_part::*title_of);

}  // namespace untax

#include "waterfall.hpp"

#include <algorithm>

namespace untax {

std::vector<waterfall_bar> waterfall_bars(const tax_report& report, const tax_row* row,
                                          std::string_view tax_part::*title_of) {
  const tax_breakdown parts = row != nullptr ? row->breakdown(report) : layer_total(report);
  const tax_breakdown chance =
      row != nullptr ? row->uncertainty(report) : layer_uncertainty(report);
  const std::vector<tax_part> shown = shown_parts(report);
  const double total = parts.total();
  double longest = total;
  double level = total;
  for (const tax_part& part : shown) longest = std::max(longest, level -= parts.*part.value);

  std::vector<waterfall_bar> bars = {{"total", "E0, eager", 0, total / longest, total, 0}};
  level = total;
  for (const tax_part& part : shown) {
    const double value = parts.*part.value;
    const bool separable = row != nullptr ? row->separates(part, report) : separates(part, report);
    if (is_sum(part) && !separable) continue;
    // The bound is a bar from zero. Every other bar hangs from the lower end of the bar before it.
    bars.push_back({part.key, part.*title_of, level / longest, (level - value) / longest, value,
                    chance.*part.value, separable});
    level -= value;
  }
  return bars;
}

}  // namespace untax

#include "waterfall.hpp"

#include <algorithm>

namespace untax {

std::vector<waterfall_bar> waterfall_bars(const tax_breakdown& parts, const tax_breakdown& chance,
                                          std::string_view tax_part::*title_of,
                                          const std::vector<tax_part>& shown) {
  const double total = parts.total();
  double longest = total;
  double level = total;
  for (const tax_part& part : shown) longest = std::max(longest, level -= parts.*part.value);

  std::vector<waterfall_bar> bars = {{"total", "E0, eager", 0, total / longest, total, 0}};
  level = total;
  for (const tax_part& part : shown) {
    const double value = parts.*part.value;
    // The bound is a bar from zero. Every other bar hangs from the lower end of the bar before it.
    bars.push_back({part.key, part.*title_of, level / longest, (level - value) / longest, value,
                    chance.*part.value});
    level -= value;
  }
  return bars;
}

}  // namespace untax

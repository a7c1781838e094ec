#include "bench/suites/trace_cost.hpp"

#include <algorithm>
#include <cmath>

namespace untax::bench {

trace_cost cost_of(const std::vector<traced_ratio>& ratios) {
  if (ratios.empty()) return {};
  double sum = 0;
  for (const traced_ratio& r : ratios) sum += std::log(r.ratio);
  const auto most = std::ranges::max_element(ratios, {}, &traced_ratio::ratio);
  return {std::exp(sum / static_cast<double>(ratios.size())), most->ratio, most->what};
}

}  // namespace untax::bench

#include "bench/suites/trace_cost.hpp"

#include <algorithm>
#include <cmath>

namespace untax::bench {

trace_cost cost_of(const std::vector<traced_ratio>& all) {
  if (all.empty()) return {};
  double sum = 0;
  for (const traced_ratio& one : all) sum += std::log(one.ratio);
  const auto most = std::ranges::max_element(all, {}, &traced_ratio::ratio);
  return {std::exp(sum / static_cast<double>(all.size())), most->ratio, most->what};
}

}  // namespace untax::bench

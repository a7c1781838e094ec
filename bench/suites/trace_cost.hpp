#pragma once

#include <string>
#include <vector>

namespace untax::bench {

/// How much longer something takes while a trace is recorded, over all that was measured.
struct trace_cost {
  double mean = 1;  ///< geometric
  double most = 1;
  std::string where;  ///< what takes `most`

  static constexpr double bar = 1.02;  ///< for the mean
  [[nodiscard]] bool met() const noexcept { return mean <= bar; }
};

/// One measurement: what of, and the time with a recording over that without.
struct traced_ratio {
  std::string what;
  double ratio = 1;
};
[[nodiscard]] trace_cost cost_of(const std::vector<traced_ratio>& all);

}  // namespace untax::bench

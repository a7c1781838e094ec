#pragma once

#include <string>
#include <vector>

namespace untax::bench {

/// The relative cost of recording a trace, over all measurements.
struct trace_cost {
  double mean = 1;  ///< geometric
  double most = 1;
  std::string where;  ///< the measurement with `most`

  static constexpr double bar = 1.02;  ///< for the mean
  [[nodiscard]] bool met() const noexcept { return mean <= bar; }
};

/// One measurement: its subject, and the ratio of the times with and without a recording.
struct traced_ratio {
  std::string what;
  double ratio = 1;
};
[[nodiscard]] trace_cost cost_of(const std::vector<traced_ratio>& ratios);

}  // namespace untax::bench

#pragma once

#include <string>
#include <vector>

namespace untax::locality {

/// A figure that was measured and published, and the result of the simulator for it.
struct published_figure {
  std::string source;
  std::string what;
  std::string unit;  ///< "%", or "" for ratios
  double measured_from = 0;
  double measured_to = 0;  ///< the same as `measured_from` if one number was published
  double simulated = 0;
  double allowed = 0;  ///< the largest error that counts as reproduced

  /// The distance of the simulated value from the measured range.
  [[nodiscard]] double off() const;
  [[nodiscard]] bool is_reproduced() const { return off() <= allowed + 1e-9; }
};

/// Simulates all known figures. With `only`, those whose source or text contains it.
[[nodiscard]] std::vector<published_figure> published(const std::string& only = "");

/// A table in Markdown. It includes the mean error of the 12 hit rates of GEMM.
[[nodiscard]] std::string markdown_of(const std::vector<published_figure>& figures);

}  // namespace untax::locality

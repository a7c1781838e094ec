#pragma once

#include <string>
#include <vector>

namespace untax::locality {

/// A figure that somebody measured and published, and what the simulator makes of it.
struct published_figure {
  std::string source;
  std::string what;
  std::string unit;  ///< "%", or "" for ratios
  double measured_from = 0;
  double measured_to = 0;  ///< the same as `measured_from` where one number was published
  double simulated = 0;
  double allowed = 0;  ///< by how much it may be off

  [[nodiscard]] double off() const;
  [[nodiscard]] bool is_reproduced() const { return off() <= allowed + 1e-9; }
};

/// Simulates all figures that are known. With `only`, those whose source or text holds it.
[[nodiscard]] std::vector<published_figure> published(const std::string& only = "");

/// As a table in Markdown, 12 hit rates of GEMM and their mean error among it.
[[nodiscard]] std::string markdown_of(const std::vector<published_figure>& figures);

}  // namespace untax::locality

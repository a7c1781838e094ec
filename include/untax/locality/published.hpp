#pragma once

#include <functional>
#include <string>
#include <vector>

#include <untax/locality/order_formula.hpp>

namespace untax::locality {

/// A figure that was measured and published, and the result of the simulator for it.
struct published_figure {
  std::string source;
  std::string what;
  std::string unit;  ///< "%", or "" for ratios
  double measured_from = 0;
  double measured_to = 0;  ///< the same as `measured_from` if one number was published
  double simulated = 0;
  double spread = 0;   ///< of the simulated value, over seeds
  double allowed = 0;  ///< the largest error that counts as reproduced

  /// The distance of the simulated value from the measured range.
  [[nodiscard]] double off() const;
  [[nodiscard]] bool is_reproduced() const { return off() <= allowed + 1e-9; }
};

/// Simulates all known figures. With `only`, those whose source or text contains it.
[[nodiscard]] std::vector<published_figure> published(const std::string& only = "");

/// An order of a kernel that was measured and published, and the result of the simulator for it.
struct published_pattern {
  std::string kernel;  ///< a name of `swizzleperf_kernels`, without its prefix
  std::string name;    ///< of the order
  std::string formula;
  double measured_hits = 0;   ///< share of the requests, from hardware counters
  double measured_ratio = 0;  ///< time of the kernel as numbered over that of the pattern
  double simulated_hits = 0;
  double simulated_ratio = 0;
  order_verdict verdict;
  double bound = 1;  ///< of the hits of every bijection
};

/// Simulates the patterns of arXiv 2508.20258's kernels; the first one of each kernel is the order
/// of its numbers. With `only`, those whose source or kernel contains it.
[[nodiscard]] std::vector<published_pattern> published_patterns(const std::string& only = "");

/// A table in Markdown, with the numbers of reproduced baselines and reproduced rankings.
[[nodiscard]] std::string markdown_of(const std::vector<published_pattern>& patterns);

/// The sweeps of arXiv 2511.02132's figures over heads, keys and batches, simulated with `seeds`
/// seeds, beside the statements of its text: a table in Markdown. Calls `progress` after each of
/// `sweep_simulations`.
[[nodiscard]] std::string sweeps(int seeds, const std::function<void()>& progress = {});
[[nodiscard]] int sweep_simulations();

/// A table in Markdown. It includes the mean error of the 12 hit rates of GEMM.
[[nodiscard]] std::string markdown_of(const std::vector<published_figure>& figures);

}  // namespace untax::locality

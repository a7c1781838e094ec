#pragma once

#include <functional>
#include <string>
#include <vector>

#include <untax/taxes/report.hpp>

namespace untax::bench {

/// A measurement of untax and of a reference, both in turn in the same run.
struct comparison {
  std::string name;
  std::string reference;        ///< the code that it is compared with
  spread time;                  ///< of untax, in seconds
  spread reference_time;        ///< the same work done by the reference
  bool compares_rates = false;  ///< the ratio is of rates (more is better), not of times
  double bar = 1;               ///< the ratio to reach, or not to exceed
  double work = 0;              ///< bytes or FLOPs of one run; 0: none
  int threads = 1;              ///< of the reference

  /// untax over reference, of rates or of times.
  [[nodiscard]] double ratio() const noexcept;
  [[nodiscard]] bool met() const noexcept;
  /// "at least 0.90", "at most 1.10".
  [[nodiscard]] std::string bar_text() const;
};

struct host_suite_options {
  int repeats = 20;
  std::function<void()> progress;  ///< called after each repeat of each comparison. May be empty
};

/// The bars of the host backend: a put, a fused operator and a signal, each compared with the bare
/// operation. It needs two cores; any other load shows in the figures.
[[nodiscard]] std::vector<comparison> run_host_suite(const host_suite_options& options);

/// The number of calls of `progress`.
[[nodiscard]] int steps_of(const host_suite_options& options);

}  // namespace untax::bench

#pragma once

#include <functional>
#include <vector>

#include "bench/suites/pattern_runs.hpp"

namespace untax::bench {

struct operator_suite_options {
  int ranks = 2;
  int repeats = 20;
  std::function<void()> progress;  ///< called `steps_of` times. May be empty
};

/// One operator on one problem, in every pattern.
struct operator_figures {
  trial_subject what;
  std::vector<pattern_result> results;
};

/// Every operator and pattern over a few shapes, ranks as threads.
[[nodiscard]] std::vector<operator_figures> run_operator_suite(
    const operator_suite_options& options);

/// The number of calls of `progress`.
[[nodiscard]] int steps_of(const operator_suite_options& options);

}  // namespace untax::bench

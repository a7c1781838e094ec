#pragma once

#include <string>
#include <vector>

#include "bench/suites/pattern_runs.hpp"
#include "terminal.hpp"

namespace untax::cli {

/// One row a pattern: times, rate, how much faster than bulk_library where that was run too, and
/// whether the result is right where that was looked at.
[[nodiscard]] std::string pattern_table(const trial_subject& what, int ranks,
                                        const std::vector<bench::pattern_result>& results,
                                        double tolerance, int width, text_style how);

}  // namespace untax::cli

#pragma once

#include <string>
#include <vector>

#include "bench/suites/pattern_runs.hpp"
#include "terminal.hpp"

namespace untax::cli {

/// One row for each pattern: times, rate, the gain over bulk_library if that was run too, and
/// whether the result is right if it was verified.
[[nodiscard]] std::string pattern_table(const trial_subject& what, int ranks,
                                        const std::vector<bench::pattern_result>& results,
                                        double tolerance, int width, text_style how);

}  // namespace untax::cli

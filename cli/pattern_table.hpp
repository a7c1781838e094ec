#pragma once

#include <string>
#include <vector>

#include "bench/suites/pattern_runs.hpp"

namespace untax::cli {

/// "all_gather_gemm, m 512, n 1024, k 768, fp32, gather rows".
[[nodiscard]] std::string describe(const operator_entry& entry, const gemm_problem& problem);

/// One row a pattern: times, rate, how much faster than bulk_library where that was run too, and
/// whether the result is right where that was looked at.
[[nodiscard]] std::string pattern_table(const operator_entry& entry, const gemm_problem& problem,
                                        int ranks,
                                        const std::vector<bench::pattern_result>& results,
                                        double tolerance);

}  // namespace untax::cli

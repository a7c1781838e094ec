#pragma once

#include "bench/suites/gemm.hpp"

namespace untax::cli {

/// Prints the table of the gemm suite.
void print_gemm(const bench::gemm_report& report);

}  // namespace untax::cli

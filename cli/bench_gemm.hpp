#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "bench/suites/gemm.hpp"
#include "terminal.hpp"

namespace untax::cli {

/// The options of `untax bench gemm`, apart from the rows of A.
struct gemm_bench_request {
  int problems = 0;
  std::uint32_t seed = 1;
  std::int64_t least_rows = 1;
  std::int64_t most_rows = 16384;
  bool every_plan = false;
  bool rasters = false;
  bool invariant = false;
  double seconds = 0;
  bool traced = false;  ///< also while a trace is recorded
};

void add_gemm_options(CLI::App& verb, gemm_bench_request& request);

/// The tables of the gemm suite, one for few rows and one for many.
[[nodiscard]] std::string text_of(const bench::gemm_report& report, int columns, text_style how);

/// Measures the gemm suite and prints it. Returns the exit status.
[[nodiscard]] int run_gemm_bench(const gemm_bench_request& request,
                                 const std::vector<std::int64_t>& sizes, int repeats,
                                 const std::string& json);

}  // namespace untax::cli

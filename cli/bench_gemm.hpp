#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "bench/suites/gemm.hpp"
#include "terminal.hpp"

namespace untax::cli {

struct bench_options;

/// The options that only `untax bench gemm` has.
struct gemm_bench_request {
  std::int64_t least_rows = 1;
  std::int64_t most_rows = 16384;
  bool every_plan = false;
  bool rasters = false;
  bool invariant = false;
};

/// Adds these.
void add_gemm_options(CLI::App& verb, gemm_bench_request& request);

/// The tables of the gemm suite, one for few rows and one for many.
[[nodiscard]] std::string text_of(const bench::gemm_report& report, int columns, text_style how);

/// Measures the gemm suite and prints it. Returns the exit status.
[[nodiscard]] int run_gemm_bench(const bench_options& options);

}  // namespace untax::cli

#pragma once

#include <string>
#include <vector>

#include "bench/suites/rma.hpp"
#include "terminal.hpp"

namespace untax::cli {

struct bench_options;

/// The tables of the rma suite.
[[nodiscard]] std::string text_of(const bench::rma_report& report, int columns, text_style how);

/// The figures whose bar no method meets.
[[nodiscard]] std::vector<std::string> missed_bars(const bench::rma_report& report);

/// Measures the verbs of kernels. Returns the exit code: 1 if a bar is missed.
[[nodiscard]] int run_rma(const bench_options& options);

}  // namespace untax::cli

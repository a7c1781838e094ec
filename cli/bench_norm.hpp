#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "bench/suites/norm.hpp"
#include "terminal.hpp"

namespace untax::cli {

struct bench_options;

/// The options of the suite all-reduce-norm, as written on the command line.
struct norm_bench_request {
  std::vector<std::int64_t> tokens;
  std::vector<std::int64_t> hidden;
};

/// Adds its own options.
void add_norm_options(CLI::App& verb, norm_bench_request& request);

/// The table of the suite, with the bars below.
[[nodiscard]] std::string text_of(const bench::norm_report& report, int columns, text_style how);

/// Runs the suite, prints a table, writes JSON. Returns the exit code: 1 if a result is
/// wrong or a bar is missed.
[[nodiscard]] int run_norm(const bench_options& options);

}  // namespace untax::cli

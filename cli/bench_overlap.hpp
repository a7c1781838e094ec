#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "bench/suites/overlap.hpp"
#include "terminal.hpp"

namespace untax::cli {

struct bench_options;

/// The options of the suites of GEMM operators, as written on the command line.
struct overlap_request {
  std::string shapes = "prefill";
  std::vector<std::int64_t> m;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::string gather = "rows";
  std::optional<std::string> partials;  ///< empty: as the problem
  std::vector<std::string> patterns;
};

/// The element type of partial results that was asked for, if one was. Throws `invalid_argument`.
[[nodiscard]] std::optional<dtype> partials_of(const overlap_request& request);

/// Adds the options that all these suites have.
void add_overlap_options(CLI::App& verb, overlap_request& request);
/// --gather.
void add_gather_option(CLI::App& verb, overlap_request& request);
/// --partials.
void add_partials_option(CLI::App& verb, overlap_request& request);

/// The tables of the suites between GPUs, with the bars below.
[[nodiscard]] std::string text_of(const bench::overlap_report& report, int columns, text_style how);

/// Measures `operator_name`, prints a table, writes JSON. Returns the exit code: 1 if a result is
/// wrong or a bar is missed.
[[nodiscard]] int run_overlap(const std::string& operator_name, const bench_options& options);

}  // namespace untax::cli

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

/// The options of the suites of GEMM operators, as written on the command line.
struct overlap_request {
  std::string shapes = "prefill";
  std::vector<std::int64_t> m;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::string gather = "rows";
  std::optional<std::string> partials;  ///< empty: as the problem
  int problems = 0;                     ///< with rows drawn by `seed`; 0: the grid
  std::uint64_t seed = 0;
  std::vector<std::string> patterns;
};

/// The element type of partial results that was asked for, if one was. Throws `invalid_argument`.
[[nodiscard]] std::optional<dtype> partials_of(const overlap_request& request);

/// Adds its options to `untax bench`.
void add_overlap_options(CLI::App& verb, overlap_request& request);

/// The tables of the suites between GPUs, with the bars below.
[[nodiscard]] std::string text_of(const bench::overlap_report& report, int columns, text_style how);

/// Measures `operator_name`, prints a table, writes JSON if `json` is not empty. Returns the exit
/// code: 1 if a result is wrong or a bar is missed.
[[nodiscard]] int run_overlap(const std::string& operator_name, const overlap_request& request,
                              int ranks, int repeats, const std::string& json);

}  // namespace untax::cli

#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "bench/suites/tune.hpp"
#include "terminal.hpp"

namespace untax::cli {

/// What the suite tune is asked for, as it is written.
struct tune_request {
  std::string operator_name;  ///< empty: all
  bool quick = false;
  bool check = false;
  int held_out = 20;
};

/// Adds its options to `untax bench`.
void add_tune_options(CLI::App& verb, tune_request& request);

/// A table for each operator, and what it gathers by.
[[nodiscard]] std::string text_of(const tuning_table& measured, int columns, text_style how);
[[nodiscard]] std::string text_of(const bench::tune_check& check, int columns, text_style how);

/// Measures a table for each of `ranks`, or for all GPUs if there is none, and writes it if `json`
/// is not empty; or, with `check`, measures held-out problems and says how good choices are.
/// Returns the exit code: 1 if a result is wrong, or if too few choices are good.
[[nodiscard]] int run_tune(const tune_request& request, std::vector<int> ranks, int repeats,
                           const std::string& json);

}  // namespace untax::cli

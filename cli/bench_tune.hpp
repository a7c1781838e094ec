#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "bench/suites/tune.hpp"
#include "terminal.hpp"

namespace untax::cli {

/// The options of the suite tune, as written on the command line.
struct tune_request {
  std::string operator_name;  ///< empty: all
  bool quick = false;
  bool check = false;
  int held_out = 20;
  double seconds = 0;  ///< no shape is begun after so long; 0: no limit
};

/// Adds its options to `untax bench`.
void add_tune_options(CLI::App& verb, tune_request& request);

/// A table for each operator and axis that it gathers.
[[nodiscard]] std::string text_of(const tuning_table& measured, int columns, text_style how);
[[nodiscard]] std::string text_of(const bench::tune_check& check, int columns, text_style how);

/// Measures a table for each number in `ranks`, or for all GPUs if it is empty, and writes it if
/// `json` is not empty. With `check`, it measures held-out problems and reports how good choices
/// are. Returns the exit code: 1 if a result is wrong, or if too few choices are good.
[[nodiscard]] int run_tune(const tune_request& request, std::vector<int> ranks, int repeats,
                           const std::string& json);

}  // namespace untax::cli

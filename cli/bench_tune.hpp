#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

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

/// Measures a table for each of `ranks`, or for all GPUs if there is none, and writes it if `json`
/// is not empty; or, with `check`, measures held-out problems and says how good choices are.
/// Returns the exit code: 1 if a result is wrong, or if too few choices are good.
[[nodiscard]] int run_tune(const tune_request& request, std::vector<int> ranks, int repeats,
                           const std::string& json);

}  // namespace untax::cli

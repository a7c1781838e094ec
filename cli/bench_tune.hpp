#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "bench/suites/tune.hpp"
#include "terminal.hpp"

namespace untax::cli {

struct bench_options;

/// The options of the suite tune, as written on the command line.
struct tune_request {
  bool quick = false;
  bool check = false;
  int held_out = 20;
};

/// Adds the options of the suite, apart from --operator and --seconds.
void add_tune_options(CLI::App& verb, tune_request& request);

/// A table for each operator and axis that it gathers.
[[nodiscard]] std::string text_of(const tuning_table& measured, int columns, text_style how);
[[nodiscard]] std::string text_of(const bench::tune_check& check, int columns, text_style how);

/// Measures a table for each number of ranks, or for all GPUs if none was given, and writes it.
/// With --check, it measures held-out problems and reports how good choices are. Returns the exit
/// code: 1 if a result is wrong, or if too few choices are good.
[[nodiscard]] int run_tune(const bench_options& asked);

}  // namespace untax::cli

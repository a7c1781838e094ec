#pragma once

#include <string>
#include <vector>

#include "bench/suites/shared.hpp"
#include "terminal.hpp"

namespace untax::cli {

struct bench_options;

/// A table for each operator and number of ranks.
[[nodiscard]] std::string text_of(const bench::shared_report& report, int columns, text_style how);

/// Measures operators between ranks that share a GPU, prints a table, writes JSON. Returns the exit
/// code: 1 if a result is wrong.
[[nodiscard]] int run_shared(const bench_options& asked);

}  // namespace untax::cli

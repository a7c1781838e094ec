#pragma once

#include <string>

#include "bench/suites/locality.hpp"
#include "bench/suites/sides.hpp"
#include "output.hpp"
#include "terminal.hpp"

namespace untax::cli {

struct bench_options;

/// The table of `untax bench locality`.
[[nodiscard]] std::string text_of(const bench::replay_report& report, int columns, text_style how);
/// The table of `untax bench locality --sides`.
[[nodiscard]] std::string text_of(const bench::side_report& report, int columns, text_style how);

/// Measures and prints. Returns the exit status.
[[nodiscard]] int run_locality_bench(const bench_options& options);

}  // namespace untax::cli

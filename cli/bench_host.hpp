#pragma once

#include <string>
#include <vector>

#include "bench/suites/host.hpp"
#include "terminal.hpp"

namespace untax::cli {

struct bench_options;

/// The table of the host suite: two rows for each comparison, untax and what it is compared with.
[[nodiscard]] std::string text_of(const std::vector<bench::comparison>& comparisons, int columns,
                                  text_style how);

/// Measures what the host backend does beside the bare operations. Returns the exit code: 1 if a
/// bar is missed.
[[nodiscard]] int run_host(const bench_options& options);

/// Measures every operator and pattern with ranks as threads. Returns the exit code.
[[nodiscard]] int run_operators(const bench_options& options);

}  // namespace untax::cli

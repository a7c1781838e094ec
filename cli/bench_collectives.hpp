#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/suites/collectives.hpp"
#include "terminal.hpp"

namespace untax::cli {

struct bench_options;

/// A table for each collective.
[[nodiscard]] std::string text_of(const bench::collective_report& report, int columns,
                                  text_style how);

/// Whether all bars are met: absolute ones for small sizes, and the ratios to NCCL.
[[nodiscard]] bool all_met(const bench::collective_report& report);

/// The variants that `--sweep` measures in turn on vectors of at most `bytes` bytes.
[[nodiscard]] std::vector<bench::collective_variant> swept_variants(std::int64_t bytes);

/// The names of the collectives that can be measured.
[[nodiscard]] std::vector<std::string> known_collectives();

/// Measures collectives. Returns the exit code: 1 if a bar is missed.
[[nodiscard]] int run_collectives(const bench_options& options);

}  // namespace untax::cli

#pragma once

#include <cstdint>

#include "bench/suites/collectives.hpp"

namespace untax::cli {

/// Prints a table for each collective.
void print_collectives(const bench::collective_report& report);

/// Whether every bar of the suite is met: absolute ones for small sizes, and NCCL beside.
[[nodiscard]] bool all_met(const bench::collective_report& report);

/// The variants that `--sweep` measures in turn on vectors of so many bytes at most.
[[nodiscard]] std::vector<bench::collective_variant> swept_variants(std::int64_t bytes);

}  // namespace untax::cli

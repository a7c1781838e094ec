#pragma once

#include <string>

#include "bench/suites/collectives.hpp"

namespace untax::cli {

/// Prints a table for each collective.
void print_collectives(const bench::collective_report& report);

/// Whether every bar of the suite is met: absolute ones for small sizes, and NCCL beside.
[[nodiscard]] bool all_met(const bench::collective_report& report);

/// The variants that `--sweep` measures in turn.
[[nodiscard]] std::vector<bench::collective_variant> swept_variants();

}  // namespace untax::cli

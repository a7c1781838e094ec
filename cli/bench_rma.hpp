#pragma once

#include <string>
#include <vector>

#include "bench/suites/rma.hpp"

namespace untax::cli {

/// Prints the tables of the rma suite.
void print_rma(const bench::rma_report& report);

/// The figures whose bar no method meets.
[[nodiscard]] std::vector<std::string> missed_bars(const bench::rma_report& report);

}  // namespace untax::cli

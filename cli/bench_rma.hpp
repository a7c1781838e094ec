#pragma once

#include <string>
#include <vector>

#include "bench/suites/rma.hpp"
#include "terminal.hpp"

namespace untax::cli {

/// The tables of the rma suite.
[[nodiscard]] std::string text_of(const bench::rma_report& report, int columns, text_style how);

/// The figures whose bar no method meets.
[[nodiscard]] std::vector<std::string> missed_bars(const bench::rma_report& report);

}  // namespace untax::cli

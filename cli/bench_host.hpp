#pragma once

#include <string>
#include <vector>

#include "bench/suites/host.hpp"
#include "terminal.hpp"

namespace untax::cli {

/// The table of the host suite: two rows for each comparison, untax and what it is compared with.
[[nodiscard]] std::string text_of(const std::vector<bench::comparison>& all, int columns,
                                  text_style how);

}  // namespace untax::cli

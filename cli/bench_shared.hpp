#pragma once

#include <string>
#include <vector>

#include "bench/suites/shared.hpp"

namespace untax::cli {

/// Measures operators between ranks that share a GPU, prints a table, writes JSON if `json` is not
/// empty. Returns the exit code: 1 if a result is wrong.
[[nodiscard]] int run_shared(bench::shared_options options, const std::string& json);

}  // namespace untax::cli

#pragma once

#include <cstdint>
#include <string>

#include <CLI/CLI.hpp>

#include "bench/suites/flash_attention.hpp"
#include "output.hpp"
#include "terminal.hpp"

namespace untax::cli {

struct bench_options;

/// The table of `untax bench flash-attention`.
[[nodiscard]] std::string text_of(const bench::flash_report& report, int columns, text_style how);

/// Measures and prints. Returns the exit status.
[[nodiscard]] int run_flash_attention(const bench_options& options);

}  // namespace untax::cli

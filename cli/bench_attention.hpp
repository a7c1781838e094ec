#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "bench/suites/attention.hpp"
#include "terminal.hpp"

namespace untax::cli {

struct bench_options;

/// The options of the suite flash-decode, as written on the command line.
struct attention_bench_request {
  std::vector<std::string> heads;
  std::vector<std::int64_t> batches;
  std::vector<std::int64_t> keys;
  std::int64_t page_size = 0;
  bool narrow = false;
};

/// Adds the options of the suite, apart from --problems.
void add_attention_options(CLI::App& verb, attention_bench_request& request);

/// The table of the suite.
[[nodiscard]] std::string text_of(const bench::attention_report& report, int columns,
                                  text_style how);

/// Measures, prints a table, writes JSON. Returns the exit code: 1 if a bar is missed.
[[nodiscard]] int run_attention(const bench_options& options);

}  // namespace untax::cli

#pragma once

#include <span>

#include "bench_options.hpp"

namespace CLI {
class App;
}

namespace untax::cli {

/// The place in which a suite measures.
enum class bench_place { host, one_gpu, between_gpus };

/// A suite of `untax bench`: a subcommand.
struct bench_suite {
  const char* name;
  bench_place place;
  const char* summary;  ///< one line
  const char* description;
  const char* examples;  ///< arguments behind `untax bench`, one command a line
  void (*add_options)(CLI::App& suite, bench_options& options);  ///< beside the common options
  int (*run)(const bench_options& options);                      ///< returns the exit status
};

/// The suites of `untax bench`.
[[nodiscard]] std::span<const bench_suite> bench_suites();

}  // namespace untax::cli

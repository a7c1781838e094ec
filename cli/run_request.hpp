#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/suites/pattern_runs.hpp"

namespace untax::cli {

/// What `untax run` was asked for.
struct run_request {
  bench::pattern_request work;
  std::optional<int> ranks;  ///< 2, all GPUs, or as many as a launcher started
  bool processes = false;
  bool explain = false;
  std::optional<double> tolerance;  ///< what follows from the element types
  std::optional<std::chrono::milliseconds> wait_limit;
  std::string json;                    ///< path, "-" for stdout, empty for none
  std::string trace;                   ///< path, empty for none
  std::vector<std::string> arguments;  ///< of this process
};

/// What it has to say.
struct run_report {
  const run_request* request = nullptr;
  int ranks = 0;
  std::string_view kind;  ///< of the world
  double tolerance = 0;
  std::vector<bench::pattern_result> results;

  [[nodiscard]] bool right(const bench::pattern_result& result) const {
    return !result.error || *result.error <= tolerance;
  }
  [[nodiscard]] bool right() const;
};

/// How many GPUs this process sees; 0 without CUDA.
[[nodiscard]] int gpus_here();

/// `asked`, or all of them where that is 0; 1 at least.
[[nodiscard]] int ranks_on_gpus(int asked);

/// Carries the request out, with ranks as threads, as processes, or as this process's rank in the
/// world of a launcher. Returns the exit code: 1 when a result was wrong, or a rank failed.
[[nodiscard]] int carry_out(const run_request& request);

/// Prints the report, and writes its JSON if that was asked for.
void present(const run_report& report);

}  // namespace untax::cli

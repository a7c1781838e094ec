#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <untax/core/types.hpp>

#include "bench/suites/pattern_runs.hpp"

namespace untax::cli {

/// The request of `untax run`.
struct run_request {
  bench::pattern_request work;
  std::optional<int> ranks;  ///< default: 2, all GPUs, or as many as a launcher started
  bool processes = false;
  bool explain = false;
  std::optional<double> tolerance;  ///< default: by the element types
  std::optional<std::chrono::milliseconds> wait_limit;
  std::string json;                    ///< path, "-" for stdout, empty for none
  std::string trace;                   ///< path, empty for none
  std::vector<std::string> arguments;  ///< of this process
};

/// The results of a request.
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

/// The number of GPUs that this process sees; 0 without CUDA.
[[nodiscard]] int gpus_here();

/// Whether a model of elements of `type` runs on GPUs. `backend` is that of --backend: with auto it
/// does if there is a GPU for each rank and elements have 16 bits.
[[nodiscard]] bool runs_on_gpus(const std::string& backend, dtype type, int ranks);

/// `asked`, or the number of GPUs if it is 0; at least 1.
[[nodiscard]] int ranks_on_gpus(int asked);

/// Carries the request out, with ranks as threads, as processes, or as this process's rank in the
/// world of a launcher. Returns the exit code: 1 when a result was wrong, or a rank failed.
[[nodiscard]] int carry_out(const run_request& request);

/// Prints the report, and writes its JSON if the request names a file for it.
void present(const run_report& report);

/// The footer of `untax run --help`: operators, patterns, examples.
[[nodiscard]] std::string run_footer();

}  // namespace untax::cli

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <untax/taxes/report.hpp>
#include <untax/world/world.hpp>

#include "ops/common/trial.hpp"

namespace untax::bench {

/// One problem, to be run in several patterns.
struct pattern_request {
  trial_subject what;
  std::vector<pattern> patterns;
  int repeats = 20;  ///< timed runs of each pattern
  std::uint64_t seed = 1;
  bool verify = false;
  std::function<void()> progress;  ///< called by rank 0, `steps_of` times. May be empty
};

/// The result of one pattern.
struct pattern_result {
  pattern asked = pattern::automatic;
  pattern chosen = pattern::automatic;  ///< differs from `asked` if that was `automatic`
  std::string explanation;
  spread time;
  std::optional<double> error;  ///< with `verify`: the largest relative error of all ranks and runs
  std::string refusal;          ///< why the operator refuses the pattern; then no time
};

/// Runs all patterns of the request, their timed runs interleaved. Collective; every rank gets the
/// results. If an operator refuses a pattern as `unsupported`, the error is thrown if it is the
/// only pattern; otherwise the pattern is left out. With `verify` each pattern is checked against
/// fp64 three times: before the timed runs and after them with fresh inputs and a result of NaN,
/// and on the result of the last timed run.
[[nodiscard]] std::vector<pattern_result> run_patterns(world& w, const pattern_request& request);

/// The number of calls of `progress`.
[[nodiscard]] int steps_of(const pattern_request& request);

/// Bytes of symmetric heap that each rank needs for the request.
[[nodiscard]] std::size_t heap_for(const pattern_request& request, int ranks);

/// Throws `out_of_memory`, before anything is allocated, if the request needs more memory than
/// `room_on_host` or `room_on_gpus`, or more symmetric heap than the environment sets.
void require_memory(const pattern_request& request, int ranks);

/// `automatic`, and the patterns of the subject.
[[nodiscard]] std::vector<pattern> all_patterns_of(const trial_subject& what);

}  // namespace untax::bench

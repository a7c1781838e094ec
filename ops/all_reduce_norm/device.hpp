#pragma once

#include <cstdint>
#include <string>

#include <untax/core/process_owned.hpp>
#include <untax/core/stream_ref.hpp>
#include <untax/ops/all_reduce_norm.hpp>
#include <untax/ops/options.hpp>
#include <untax/world/world.hpp>

#include "ops/common/row_plans.hpp"

namespace untax {

/// all_reduce_norm in a world of GPUs, at one rank: one kernel, which may be captured.
class device_norm {
 public:
  device_norm() = default;
  device_norm(const device_norm&) = delete;
  device_norm& operator=(const device_norm&) = delete;
  /// Collective. Waits until the operator's kernels have ended at all ranks.
  virtual ~device_norm() = default;

  /// Sets the number of tokens of the next runs: at least 1, the same at all ranks. Only for an
  /// operator that was made for any number of tokens, up to its capacity.
  virtual void set_tokens(std::int64_t tokens) = 0;
  /// Runs one epoch. The class has checked the arguments. Without a stream it returns when the
  /// results are complete.
  virtual void run(const norm_inputs& inputs, const norm_results& results, stream_ref stream) = 0;
};

/// The results of a rank that peers write. Those of the next rank are `between` bytes further.
struct shown_results {
  norm_results own;
  std::int64_t between = 0;
};

/// With `phases` 2 owners write into these results of all ranks, and `run` copies them to the
/// caller's. With `phases` 1 `run` writes the caller's results directly. Collective; the rank's GPU
/// is the current device. Throws `invalid_argument` for problems that the kernel cannot take,
/// `unsupported`, `out_of_memory`.
[[nodiscard]] process_owned<device_norm> all_reduce_norm_on_device(
    world& w, const all_reduce_norm_problem& problem, int phases, const shown_results& results);

/// As above, for any number of tokens up to that of the problem. The operator has a plan, rooms and
/// counters for each end of a table, as `device_runner` has.
[[nodiscard]] process_owned<device_norm> all_reduce_norm_for_any_tokens(
    world& w, const all_reduce_norm_problem& problem, const row_plans& plans,
    const shown_results& results);

}  // namespace untax

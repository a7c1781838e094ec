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
  /// Collective. Waits until what it has started has ended, at all ranks.
  virtual ~device_norm() = default;

  /// How many tokens runs have from here on, at least 1, at all ranks alike. Only of one that was
  /// made for any number of them, and up to what it was made for.
  virtual void set_tokens(std::int64_t tokens) = 0;
  /// One epoch. The class has looked at the arguments. Without a stream it returns when the results
  /// are complete.
  virtual void run(const norm_inputs& inputs, const norm_results& results, stream_ref stream) = 0;
};

/// The results of a rank that peers write into; those of the next rank lie `between` bytes further.
struct shown_results {
  norm_results own;
  std::int64_t between = 0;
};

/// With `phases` 2 owners write into the results of all ranks, and `run` copies them to others.
/// Collective; the rank's GPU is the current device. Throws `invalid_argument` for what the kernel
/// cannot take, `unsupported`, `out_of_memory`.
[[nodiscard]] process_owned<device_norm> all_reduce_norm_on_device(
    world& w, const all_reduce_norm_problem& problem, int phases, const shown_results& results);

/// The same for any number of tokens up to those of the problem: a kernel's plan, rooms and
/// counters for each end of a table, as `row_operators` has them.
[[nodiscard]] process_owned<device_norm> all_reduce_norm_for_any_tokens(
    world& w, const all_reduce_norm_problem& problem, const row_plans& plans,
    const shown_results& results);

}  // namespace untax

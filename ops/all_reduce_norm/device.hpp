#pragma once

#include <cstdint>
#include <string>

#include <untax/core/process_owned.hpp>
#include <untax/core/stream_ref.hpp>
#include <untax/ops/all_reduce_norm.hpp>
#include <untax/ops/options.hpp>
#include <untax/world/world.hpp>

namespace untax {

/// all_reduce_norm in a world of GPUs, at one rank: one kernel, which may be captured.
class device_norm {
 public:
  device_norm() = default;
  device_norm(const device_norm&) = delete;
  device_norm& operator=(const device_norm&) = delete;
  /// Collective. Waits until what it has started has ended, at all ranks.
  virtual ~device_norm() = default;

  /// One epoch. The class has looked at the arguments. Without a stream it returns when the results
  /// are complete.
  virtual void run(const norm_inputs& inputs, const norm_results& results, stream_ref stream) = 0;
};

/// With `phases` 2 owners write into `own`, the results of all ranks that lie `between` bytes
/// apart, and `run` copies them to others. Collective; the rank's GPU is the current device. Throws
/// `invalid_argument` for what the kernel cannot take, `unsupported`, `out_of_memory`.
[[nodiscard]] process_owned<device_norm> all_reduce_norm_on_device(
    world& w, const all_reduce_norm_problem& problem, int phases, const norm_results& own,
    std::int64_t between);

}  // namespace untax

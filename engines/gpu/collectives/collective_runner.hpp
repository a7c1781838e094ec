#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <untax/core/stream_ref.hpp>
#include <untax/world/world.hpp>

#include "engines/gpu/collectives/collective_kernel.hpp"
#include "engines/gpu/rooms/room_pool.hpp"

namespace untax::gpu {

/// Runs a collective on the GPU of a rank. It owns the operator's symmetric memory: inbox, counters
/// and epochs, which are counted on the device. Construction and destruction are collective, and
/// make the rank's GPU the calling thread's current device, which it must be in `run`.
class collective_runner {
 public:
  /// Loads the kernels: loading one later, while a peer's kernel spins, could wait for that kernel.
  /// Throws `out_of_memory`, `invalid_argument` if a launch has more blocks than the GPU can hold
  /// at once, `unsupported` without CUDA.
  /// `rooms` are those of the collective's other plans; null: it has none.
  collective_runner(world& w, const std::string& name, collective_kernel&& code,
                    room_pool* rooms = nullptr);
  collective_runner(const collective_runner&) = delete;
  collective_runner& operator=(const collective_runner&) = delete;
  /// Waits until all work on this GPU and on the GPUs of the peers has ended, then frees the
  /// memory. After a failure the memory is left to the world.
  ~collective_runner();

  /// Whether `stream` is being captured into a graph.
  [[nodiscard]] bool captures(stream_ref stream) const;

  /// Replaces the first argument of the kernel for later runs, so that they can have another count
  /// with the same kernel, blocks and memory.
  void set_argument(kernel_argument&& first);

  /// Runs one epoch. The GPU must be able to access `in` and `out`. If peers access them, `between`
  /// is the distance in bytes from one rank's buffer to the next rank's. With a stream this only
  /// launches. Without one it returns when the result is complete, and throws if a wait failed.
  void run(const void* in, void* out, std::int64_t between, stream_ref stream);

 private:
  class launcher;
  std::unique_ptr<launcher> launcher_;
};

}  // namespace untax::gpu

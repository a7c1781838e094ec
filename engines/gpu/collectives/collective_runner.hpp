#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <untax/core/stream_ref.hpp>
#include <untax/world/world.hpp>

#include "engines/gpu/collectives/code.hpp"

namespace untax::gpu {

/// Carries a collective out on the GPU of a rank. It owns the operator's symmetric memory: inbox
/// and counters; epochs are counted on the device. Construction and destruction are collective, and
/// need the rank's GPU to be the current one of the calling thread.
class collective_runner {
 public:
  /// Loads the kernels, since loading one while a peer's kernel spins could wait for that kernel.
  /// Throws `out_of_memory`, `invalid_argument` if more blocks are asked for than the GPU can hold
  /// at once, `unsupported` without CUDA.
  collective_runner(world& w, const std::string& name, transfer_code&& code);
  collective_runner(const collective_runner&) = delete;
  collective_runner& operator=(const collective_runner&) = delete;
  /// Waits until all that runs on this GPU, and on those of the peers, has ended, then frees the
  /// memory. After a failure the memory is left alone.
  ~collective_runner();

  /// Whether `stream` is being captured in a graph.
  [[nodiscard]] bool captures(stream_ref stream) const;

  /// What the kernel of the next runs is compiled for, in place of what the code had: the same
  /// kernel, blocks and memory for another count.
  void set_argument(kernel_argument&& first);

  /// One epoch. `in` and `out` can be read and written by the GPU; `between` bytes lie between
  /// those of neighbouring ranks, if peers touch them. With a stream it only launches; without one
  /// it returns when the result is complete, and throws when a wait has failed.
  void run(const void* in, void* out, std::int64_t between, stream_ref stream);

 private:
  class launcher;
  std::unique_ptr<launcher> launcher_;
};

}  // namespace untax::gpu

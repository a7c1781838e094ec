#pragma once

#include <cstdint>

#include "engines/gpu/trace/kernel_events.cuh"

namespace untax::gpu {

/// A run of a kernel, for a block that counts its runs in a word of its own.
class block_run {
 public:
  /// All threads must call this, after all earlier kernels have ended.
  __device__ block_run(const launch_trace& trace, std::uint64_t& word,
                       warp_role role = warp_role::sender)
      : trace_(trace), word_(word), epoch_(word + 1) {
    note_kernel_begin_behind(trace, role, word);
  }
  [[nodiscard]] __device__ std::uint64_t epoch() const noexcept { return epoch_; }
  /// All threads must call this, when all of them have done their work.
  __device__ void end() const {
    note_kernel_end(trace_);
    if (threadIdx.x == 0) word_ = epoch_;
  }

 private:
  const launch_trace& trace_;
  std::uint64_t& word_;
  std::uint64_t epoch_;
};

}  // namespace untax::gpu

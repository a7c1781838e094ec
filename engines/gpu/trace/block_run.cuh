#pragma once

#include <cstdint>

#include "engines/gpu/trace/kernel_events.cuh"

namespace untax::gpu {

/// A run of a kernel, as a block sees it that has a word of its own to count runs in.
class block_run {
 public:
  /// By all threads, behind all kernels that came before it.
  __device__ block_run(const launch_trace& trace, std::uint64_t& word,
                       warp_role role = warp_role::sender)
      : trace_(trace), word_(word), epoch_(word + 1) {
    note_kernel_begin_behind(trace, role, word);
  }
  [[nodiscard]] __device__ std::uint64_t epoch() const noexcept { return epoch_; }
  /// By all threads, when all of them have done what they do.
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

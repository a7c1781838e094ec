#pragma once

#include <cstdint>

#include <untax/rma/device_group.cuh>

namespace untax::gpu {

/// The first `threads` threads of a block, which move and combine data. The warp after them is the
/// control warp: it posts commands to them and does not take part in their barrier.
template <int threads>
struct worker_warps : device_block {
  static_assert(threads % 32 == 0);

  [[nodiscard]] __device__ static int thread_rank() noexcept {
    return static_cast<int>(threadIdx.x);
  }
  [[nodiscard]] __device__ static constexpr int size() noexcept { return threads; }
  __device__ static void sync() noexcept {
    asm volatile("bar.sync 1, %0;" : : "n"(threads) : "memory");
  }
};

/// Threads of a block with `threads` worker threads and the control warp.
template <int threads>
inline constexpr int block_threads = threads + 32;

}  // namespace untax::gpu

#pragma once

#include <cstdint>

#include <cuda/ptx>

namespace untax::sm90 {

/// The number of this block in its cluster.
[[nodiscard]] __device__ inline std::uint32_t block_in_cluster() {
  return cuda::ptx::get_sreg_cluster_ctarank();
}

/// All threads of all blocks of the cluster meet; what they did before is seen after.
__device__ inline void meet_cluster() {
  cuda::ptx::barrier_cluster_arrive();
  cuda::ptx::barrier_cluster_wait();
}

/// The threads of a warpgroup meet. `id` is one of the barriers 1 to 15 of the block.
__device__ inline void meet_warpgroup(int id) {
  asm volatile("bar.sync %0, 128;" : : "r"(id) : "memory");
}

}  // namespace untax::sm90

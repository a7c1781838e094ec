#pragma once

#include <cstdint>

#include <cuda/ptx>

namespace untax::gpu {

/// The number of this block in its cluster.
[[nodiscard]] __device__ inline std::uint32_t block_in_cluster() {
  return cuda::ptx::get_sreg_cluster_ctarank();
}

/// All threads of all blocks of the cluster meet. Barriers that were initialised and fenced before
/// are seen after; nothing else is ordered, which would take a fence of the whole GPU.
__device__ inline void cluster_sync() {
  cuda::ptx::barrier_cluster_arrive(cuda::ptx::sem_relaxed);
  cuda::ptx::barrier_cluster_wait();
}

/// Whether this is the one thread of its warp that has been elected; all of them call it. The
/// compiler then knows that it is alone, and needs no loop around what asks TMA.
[[nodiscard]] __device__ inline bool elect_one() {
  std::uint32_t elected = 0;
  asm volatile(
      "{\n"
      ".reg .pred elected;\n"
      "elect.sync _|elected, 0xffffffff;\n"
      "selp.u32 %0, 1, 0, elected;\n"
      "}\n"
      : "=r"(elected));
  return elected != 0;
}
/// The number of this warp in its block, as the compiler sees that all its threads have the same.
[[nodiscard]] __device__ inline int warp_in_block() {
  return __shfl_sync(0xffffffffU, static_cast<int>(threadIdx.x) / 32, 0);
}

/// Lets the next kernel of the stream take its places as this one's blocks leave theirs.
__device__ inline void griddepcontrol_launch_dependents() {
  asm volatile("griddepcontrol.launch_dependents;" : : : "memory");
}

/// Returns when the kernels before this one in the stream have ended, and what they wrote is seen.
__device__ inline void griddepcontrol_wait() {
  asm volatile("griddepcontrol.wait;" : : : "memory");
}

/// The threads of a warpgroup meet. `id` is one of the barriers 1 to 15 of the block.
__device__ inline void meet_warpgroup(int id) {
  asm volatile("bar.sync %0, 128;" : : "r"(id) : "memory");
}

/// The same. Whether all of them ask for it.
[[nodiscard]] __device__ inline bool all_of_warpgroup(int id, bool asked) {
  int all = 0;
  asm volatile(
      "{\n"
      ".reg .pred p, q;\n"
      "setp.ne.s32 p, %2, 0;\n"
      "barrier.cta.red.and.aligned.pred q, %1, 128, p;\n"
      "selp.s32 %0, 1, 0, q;\n"
      "}\n"
      : "=r"(all)
      : "r"(id), "r"(asked ? 1 : 0)
      : "memory");
  return all != 0;
}

/// The threads of two warpgroups meet. `id` is one of the barriers 1 to 15 of the block.
__device__ inline void named_barrier_sync(int id) {
  asm volatile("bar.sync %0, 256;" : : "r"(id) : "memory");
}

/// Lets the warpgroup that waits in `named_barrier_sync` of that barrier go on, and goes on itself.
__device__ inline void named_barrier_arrive(int id) {
  asm volatile("bar.arrive %0, 256;" : : "r"(id) : "memory");
}

}  // namespace untax::gpu

#pragma once

#include <cstdint>

#include <cuda/ptx>

namespace untax::gpu {

/// The number of this block in its cluster.
[[nodiscard]] __device__ inline std::uint32_t block_in_cluster() {
  return cuda::ptx::get_sreg_cluster_ctarank();
}

/// All threads of all blocks of the cluster synchronise. Barriers that were initialised and fenced
/// before are visible after it. Nothing else is ordered: that would take a fence for the whole GPU.
__device__ inline void cluster_sync() {
  cuda::ptx::barrier_cluster_arrive(cuda::ptx::sem_relaxed);
  cuda::ptx::barrier_cluster_wait();
}

/// Whether this thread is the elected one of its warp. All lanes must call this. The compiler then
/// knows that only one thread continues, and generates no loop around TMA instructions.
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
/// The number of this warp in its block, in a form that the compiler knows to be uniform.
[[nodiscard]] __device__ inline int warp_in_block() {
  return __shfl_sync(0xffffffffU, static_cast<int>(threadIdx.x) / 32, 0);
}

/// Lets blocks of the next kernel in the stream start as blocks of this kernel exit.
__device__ inline void griddepcontrol_launch_dependents() {
  asm volatile("griddepcontrol.launch_dependents;" : : : "memory");
}

/// Returns when the previous kernels in the stream have ended, and their writes are visible.
__device__ inline void griddepcontrol_wait() {
  asm volatile("griddepcontrol.wait;" : : : "memory");
}

/// Synchronises the threads of a warpgroup. `id` is one of the barriers 1 to 15 of the block.
__device__ inline void meet_warpgroup(int id) {
  asm volatile("bar.sync %0, 128;" : : "r"(id) : "memory");
}

/// Synchronises them too, and returns whether `asked` is true for all of them.
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

/// Synchronises the threads of two warpgroups. `id` is one of the barriers 1 to 15 of the block.
__device__ inline void named_barrier_sync(int id) {
  asm volatile("bar.sync %0, 256;" : : "r"(id) : "memory");
}

/// Arrives at that barrier without waiting: the warpgroup in `named_barrier_sync` can continue.
__device__ inline void named_barrier_arrive(int id) {
  asm volatile("bar.arrive %0, 256;" : : "r"(id) : "memory");
}

}  // namespace untax::gpu

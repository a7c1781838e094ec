#pragma once

namespace untax::gpu {

/// Before the tensor cores take operands or sums that this warpgroup's threads have touched.
__device__ inline void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" : : : "memory"); }

/// What was asked for since the last call becomes one group.
__device__ inline void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" : : : "memory");
}

/// Returns when no more than `pending` groups are unfinished. The sums may be read after
/// `wgmma_wait<0>`; the operands of a finished group may be overwritten.
template <int pending>
__device__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" : : "n"(pending) : "memory");
}

/// Keeps the compiler from copying sums between registers before the point where this stands, which
/// would make the tensor cores wait for each other.
template <int count>
__device__ void hold_sums(float (&sums)[count]) {
#pragma unroll
  for (int i = 0; i < count; ++i) asm volatile("" : "+f"(sums[i]) : : "memory");
}

}  // namespace untax::gpu

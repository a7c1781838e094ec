#pragma once

namespace untax::gpu {

/// Orders accesses of the warpgroup's threads to registers (sums, operands) before its next wgmma.
__device__ inline void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" : : : "memory"); }

/// Makes one group of all wgmma that were issued since the last call.
__device__ inline void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" : : : "memory");
}

/// Returns when at most `pending` groups are unfinished. The sums may be read after
/// `wgmma_wait<0>`; the operands of a finished group may be overwritten.
template <int pending>
__device__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" : : "n"(pending) : "memory");
}

/// Keeps the compiler from copying sums between registers before this point, which would serialise
/// the multiplications.
template <int count>
__device__ void hold_sums(float (&sums)[count]) {
#pragma unroll
  for (int i = 0; i < count; ++i) asm volatile("" : "+f"(sums[i]) : : "memory");
}

}  // namespace untax::gpu

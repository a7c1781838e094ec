#pragma once

namespace untax::gpu {

/// Reduces a warpgroup's registers to `count` per thread. All its warps must call this.
template <int count>
__device__ void shrink_registers() {
  static_assert(count % 8 == 0 && count >= 24 && count <= 256);
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" : : "n"(count));
}

/// Waits for registers that other warpgroups released, and raises this one's to `count` per thread.
template <int count>
__device__ void grow_registers() {
  static_assert(count % 8 == 0 && count >= 24 && count <= 256);
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" : : "n"(count));
}

}  // namespace untax::gpu

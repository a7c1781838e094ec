#pragma once

namespace untax::gpu {

/// A warpgroup gives registers back, down to `count` a thread. All its warps call it.
template <int count>
__device__ void shrink_registers() {
  static_assert(count % 8 == 0 && count >= 24 && count <= 256);
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" : : "n"(count));
}

/// A warpgroup waits for registers that others gave back, up to `count` a thread.
template <int count>
__device__ void grow_registers() {
  static_assert(count % 8 == 0 && count >= 24 && count <= 256);
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" : : "n"(count));
}

}  // namespace untax::gpu

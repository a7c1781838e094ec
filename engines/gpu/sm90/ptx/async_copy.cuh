#pragma once

#include <cstdint>

namespace untax::gpu {

/// The L2 policy for memory that is read once: it is evicted first.
[[nodiscard]] __device__ inline std::uint64_t read_once() {
  std::uint64_t policy = 0;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}

/// The L2 policy of ordinary loads.
[[nodiscard]] __device__ inline std::uint64_t read_as_usual() {
  std::uint64_t policy = 0;
  asm("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}

/// Copies 16 bytes to shared memory, bypassing L1. If `there` is false, writes zeros and does not
/// read `from`. The copy is complete, for the thread that issued it, after `wait_for_copies`.
/// Compilers keep it in order with the instructions of this file and with load_matrices only.
///
/// It has no L2::256B prefetch: that makes some multiprocessors a third slower than others.
__device__ inline void copy_16_bytes(std::uint32_t to, const void* from, bool there) {
  const int size = there ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :
               : "r"(to), "l"(__cvta_generic_to_global(from)), "r"(size));
}
__device__ inline void copy_16_bytes(std::uint32_t to, const void* from, bool there,
                                     std::uint64_t policy) {
  const int size = there ? 16 : 0;
  asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2, %3;"
               :
               : "r"(to), "l"(__cvta_generic_to_global(from)), "r"(size), "l"(policy));
}
/// As `copy_16_bytes`, for 4 bytes, possibly through L1.
__device__ inline void copy_4_bytes(std::uint32_t to, const void* from, bool there) {
  const int size = there ? 4 : 0;
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
               :
               : "r"(to), "l"(__cvta_generic_to_global(from)), "r"(size));
}

/// Makes one group of the copies that the thread issued since the last call.
__device__ inline void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

/// Waits until at most the last `left` groups of the thread are incomplete.
template <int left>
__device__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(left) : "memory");
}

}  // namespace untax::gpu

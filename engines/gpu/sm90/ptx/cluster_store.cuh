#pragma once

#include <cstdint>

namespace untax::gpu {

/// The address, in another block of the cluster, that corresponds to `own` in this block's shared
/// memory.
[[nodiscard]] __device__ inline std::uint32_t address_in_block(const void* own,
                                                               std::uint32_t block) {
  std::uint32_t there = 0;
  asm("mapa.shared::cluster.u32 %0, %1, %2;"
      : "=r"(there)
      : "r"(static_cast<std::uint32_t>(__cvta_generic_to_shared(own))), "r"(block));
  return there;
}

/// Stores to shared memory of the cluster. The mbarrier at `barrier`, in the same block, counts the
/// bytes when they have arrived. A thread that waits for it with cluster scope sees them.
__device__ inline void store_to_block(std::uint32_t to, const float4& value,
                                      std::uint32_t barrier) {
  asm volatile(
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, [%5];"
      :
      : "r"(to), "f"(value.x), "f"(value.y), "f"(value.z), "f"(value.w), "r"(barrier)
      : "memory");
}

__device__ inline void store_to_block(std::uint32_t to, float value, std::uint32_t barrier) {
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.f32 [%0], %1, [%2];"
               :
               : "r"(to), "f"(value), "r"(barrier)
               : "memory");
}

}  // namespace untax::gpu

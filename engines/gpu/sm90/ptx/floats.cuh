#pragma once

namespace untax::gpu {

/// Four floats that another block of this GPU may read or write meanwhile: each of them is whole,
/// nothing is ordered. `at` is a multiple of 16 bytes, in global memory.
__device__ inline void store_shared_floats(float4* at, const float4& value) {
  asm volatile("st.relaxed.gpu.global.v4.f32 [%0], {%1, %2, %3, %4};"
               :
               : "l"(__cvta_generic_to_global(at)), "f"(value.x), "f"(value.y), "f"(value.z),
                 "f"(value.w)
               : "memory");
}

[[nodiscard]] __device__ inline float4 load_shared_floats(const float4* at) {
  float4 value;
  asm volatile("ld.relaxed.gpu.global.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(value.x), "=f"(value.y), "=f"(value.z), "=f"(value.w)
               : "l"(__cvta_generic_to_global(at))
               : "memory");
  return value;
}

}  // namespace untax::gpu

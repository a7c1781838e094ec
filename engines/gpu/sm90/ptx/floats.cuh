#pragma once

namespace untax::gpu {

/// An approximation of 2^x; 0 for minus infinity.
[[nodiscard]] __device__ inline float power_of_2(float x) {
  float result = 0;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

/// The factor from exponents to base e to exponents to base 2, which the hardware supports.
inline constexpr float log2_of_e = 1.44269504088896340736F;

/// Stores four floats that another block of this GPU may access at the same time: each float is
/// stored whole, nothing is ordered. `at` is a multiple of 16 bytes, in global memory.
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

#pragma once

#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace untax::gpu {

// Two elements of 16 bits in a register, the first one in the lower half.

[[nodiscard]] __device__ inline std::uint32_t two_halves(float a, float b, __nv_bfloat16 /*type*/) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(a, b);
  return reinterpret_cast<const std::uint32_t&>(both);
}
[[nodiscard]] __device__ inline std::uint32_t two_halves(float a, float b, __half /*type*/) {
  const __half2 both = __floats2half2_rn(a, b);
  return reinterpret_cast<const std::uint32_t&>(both);
}
[[nodiscard]] __device__ inline float2 two_floats(std::uint32_t bits, __nv_bfloat16 /*type*/) {
  return __bfloat1622float2(reinterpret_cast<const __nv_bfloat162&>(bits));
}
[[nodiscard]] __device__ inline float2 two_floats(std::uint32_t bits, __half /*type*/) {
  return __half22float2(reinterpret_cast<const __half2&>(bits));
}

}  // namespace untax::gpu

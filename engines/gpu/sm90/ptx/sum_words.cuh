#pragma once

#include <cstdint>

namespace untax::gpu {

/// Stores words that a thread of any rank may access at the same time: each word is stored whole,
/// nothing is ordered. `at` is a multiple of 16 bytes (of 8, for two words), in global memory.
__device__ inline void store_sum_words(uint4* at, const uint4& value) {
  asm volatile("st.relaxed.sys.global.v4.b32 [%0], {%1, %2, %3, %4};"
               :
               : "l"(__cvta_generic_to_global(at)), "r"(value.x), "r"(value.y), "r"(value.z),
                 "r"(value.w)
               : "memory");
}
__device__ inline void store_sum_words(uint2* at, const uint2& value) {
  asm volatile("st.relaxed.sys.global.v2.b32 [%0], {%1, %2};"
               :
               : "l"(__cvta_generic_to_global(at)), "r"(value.x), "r"(value.y)
               : "memory");
}

/// If `asks` is false, reads nothing and returns a word of ones. For several loads in a row: after
/// a load that is conditional in C++, compilers copy its result, and that copy waits for the load
/// before the next one is issued.
[[nodiscard]] __device__ inline uint4 load_sum_words_if(bool asks, const uint4* from) {
  uint4 value;
  asm volatile(
      "{\n\t.reg .pred asks;\n\tsetp.ne.u32 asks, %5, 0;\n\t"
      "mov.b32 %0, -1;\n\tmov.b32 %1, -1;\n\tmov.b32 %2, -1;\n\tmov.b32 %3, -1;\n\t"
      "@asks ld.relaxed.sys.global.v4.b32 {%0, %1, %2, %3}, [%4];\n\t}"
      : "=&r"(value.x), "=&r"(value.y), "=&r"(value.z), "=&r"(value.w)
      : "l"(__cvta_generic_to_global(from)), "r"(asks ? 1U : 0U)
      : "memory");
  return value;
}
[[nodiscard]] __device__ inline uint2 load_sum_words_if(bool asks, const uint2* from) {
  uint2 value;
  asm volatile(
      "{\n\t.reg .pred asks;\n\tsetp.ne.u32 asks, %3, 0;\n\t"
      "mov.b32 %0, -1;\n\tmov.b32 %1, -1;\n\t"
      "@asks ld.relaxed.sys.global.v2.b32 {%0, %1}, [%2];\n\t}"
      : "=&r"(value.x), "=&r"(value.y)
      : "l"(__cvta_generic_to_global(from)), "r"(asks ? 1U : 0U)
      : "memory");
  return value;
}

}  // namespace untax::gpu

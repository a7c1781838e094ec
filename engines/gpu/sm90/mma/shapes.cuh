#pragma once

#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "engines/gpu/sm90/mma/register_lists.cuh"

// wgmma.mma_async for each shape, with fp32 sums: one instruction each, and its registers.

namespace untax::gpu {

/// The operands x, y and whether to add follow the sums. `layout` tells for x and y, if they lie in
/// shared memory, whether their rows lie along the depth of the product (1) or not (0).
#define UNTAX_WGMMA(columns, type, names, sums, x_y, adds_at, layout, ...)                      \
  asm volatile(                                                                                 \
      "{\n"                                                                                     \
      ".reg .pred adds;\n"                                                                      \
      "setp.ne.b32 adds, " adds_at                                                              \
      ", 0;\n"                                                                                  \
      "wgmma.mma_async.sync.aligned.m64n" columns "k16.f32." type "." type " {" names "}, " x_y \
      ", adds, 1, 1, " layout                                                                   \
      ";\n"                                                                                     \
      "}\n"                                                                                     \
      : sums                                                                                    \
      : __VA_ARGS__, "r"(adds))

/// d = x * y^T, added to d if `adds`: 64 x `columns` sums, 16 elements deep, by a warpgroup. x and
/// y are descriptors. Asynchronous: see wgmma_fence.
template <class T, int columns>
__device__ __forceinline__ void multiply(float (&d)[columns / 2], std::uint64_t x, std::uint64_t y,
                                         int adds);

#define UNTAX_MULTIPLY(columns, sums, x_y, adds_at)                                            \
  template <>                                                                                  \
  __device__ __forceinline__ void multiply<__nv_bfloat16, columns>(                            \
      float(&d)[sums], std::uint64_t x, std::uint64_t y, int adds) {                           \
    UNTAX_WGMMA(#columns, "bf16", UNTAX_NAMES_##sums, UNTAX_SUMS_##sums, x_y, adds_at, "0, 0", \
                "l"(x), "l"(y));                                                               \
  }                                                                                            \
  template <>                                                                                  \
  __device__ __forceinline__ void multiply<__half, columns>(float(&d)[sums], std::uint64_t x,  \
                                                            std::uint64_t y, int adds) {       \
    UNTAX_WGMMA(#columns, "f16", UNTAX_NAMES_##sums, UNTAX_SUMS_##sums, x_y, adds_at, "0, 0",  \
                "l"(x), "l"(y));                                                               \
  }

UNTAX_MULTIPLY(16, 8, "%8, %9", "%10")
UNTAX_MULTIPLY(32, 16, "%16, %17", "%18")
UNTAX_MULTIPLY(64, 32, "%32, %33", "%34")
UNTAX_MULTIPLY(80, 40, "%40, %41", "%42")
UNTAX_MULTIPLY(96, 48, "%48, %49", "%50")
UNTAX_MULTIPLY(112, 56, "%56, %57", "%58")
UNTAX_MULTIPLY(128, 64, "%64, %65", "%66")
UNTAX_MULTIPLY(144, 72, "%72, %73", "%74")
UNTAX_MULTIPLY(160, 80, "%80, %81", "%82")
UNTAX_MULTIPLY(168, 84, "%84, %85", "%86")
UNTAX_MULTIPLY(176, 88, "%88, %89", "%90")
UNTAX_MULTIPLY(192, 96, "%96, %97", "%98")
UNTAX_MULTIPLY(200, 100, "%100, %101", "%102")
UNTAX_MULTIPLY(224, 112, "%112, %113", "%114")
UNTAX_MULTIPLY(256, 128, "%128, %129", "%130")

/// d = x * y, added to d if `adds`. x lies in registers, two elements each, in the layout of the
/// sums of an earlier product; y describes rows of `columns` elements. Asynchronous, including its
/// reads of x: see wgmma_fence.
template <class T, int columns>
__device__ __forceinline__ void multiply_registers(float (&d)[columns / 2],
                                                   const std::uint32_t (&x)[4], std::uint64_t y,
                                                   int adds);

#define UNTAX_MULTIPLY_REGISTERS(columns, sums, x_y, adds_at)                               \
  template <>                                                                               \
  __device__ __forceinline__ void multiply_registers<__nv_bfloat16, columns>(               \
      float(&d)[sums], const std::uint32_t(&x)[4], std::uint64_t y, int adds) {             \
    UNTAX_WGMMA(#columns, "bf16", UNTAX_NAMES_##sums, UNTAX_SUMS_##sums, x_y, adds_at, "1", \
                "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "l"(y));                        \
  }                                                                                         \
  template <>                                                                               \
  __device__ __forceinline__ void multiply_registers<__half, columns>(                      \
      float(&d)[sums], const std::uint32_t(&x)[4], std::uint64_t y, int adds) {             \
    UNTAX_WGMMA(#columns, "f16", UNTAX_NAMES_##sums, UNTAX_SUMS_##sums, x_y, adds_at, "1",  \
                "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "l"(y));                        \
  }

UNTAX_MULTIPLY_REGISTERS(64, 32, "{%32, %33, %34, %35}, %36", "%37")
UNTAX_MULTIPLY_REGISTERS(128, 64, "{%64, %65, %66, %67}, %68", "%69")
UNTAX_MULTIPLY_REGISTERS(256, 128, "{%128, %129, %130, %131}, %132", "%133")

#undef UNTAX_MULTIPLY
#undef UNTAX_MULTIPLY_REGISTERS
#undef UNTAX_WGMMA

}  // namespace untax::gpu

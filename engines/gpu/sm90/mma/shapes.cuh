#pragma once

#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

// wgmma.mma_async for each shape, with fp32 sums: one instruction each, and its registers, of which
// the macros know lists of several lengths.

namespace untax::gpu {

#define UNTAX_NAMES_8 "%0, %1, %2, %3, %4, %5, %6, %7"
#define UNTAX_NAMES_16 \
  UNTAX_NAMES_8        \
  ", %8, %9, %10, %11, %12, %13, %14, %15"
#define UNTAX_NAMES_32                       \
  UNTAX_NAMES_16                             \
  ", %16, %17, %18, %19, %20, %21, %22, %23" \
  ", %24, %25, %26, %27, %28, %29, %30, %31"
#define UNTAX_NAMES_40 \
  UNTAX_NAMES_32       \
  ", %32, %33, %34, %35, %36, %37, %38, %39"
#define UNTAX_NAMES_48 \
  UNTAX_NAMES_40       \
  ", %40, %41, %42, %43, %44, %45, %46, %47"
#define UNTAX_NAMES_56 \
  UNTAX_NAMES_48       \
  ", %48, %49, %50, %51, %52, %53, %54, %55"
#define UNTAX_NAMES_64 \
  UNTAX_NAMES_56       \
  ", %56, %57, %58, %59, %60, %61, %62, %63"
#define UNTAX_NAMES_72 \
  UNTAX_NAMES_64       \
  ", %64, %65, %66, %67, %68, %69, %70, %71"
#define UNTAX_NAMES_80 \
  UNTAX_NAMES_72       \
  ", %72, %73, %74, %75, %76, %77, %78, %79"
#define UNTAX_NAMES_88 \
  UNTAX_NAMES_80       \
  ", %80, %81, %82, %83, %84, %85, %86, %87"
#define UNTAX_NAMES_96 \
  UNTAX_NAMES_88       \
  ", %88, %89, %90, %91, %92, %93, %94, %95"
#define UNTAX_NAMES_104 \
  UNTAX_NAMES_96        \
  ", %96, %97, %98, %99, %100, %101, %102, %103"
#define UNTAX_NAMES_112 \
  UNTAX_NAMES_104       \
  ", %104, %105, %106, %107, %108, %109, %110, %111"
#define UNTAX_NAMES_120 \
  UNTAX_NAMES_112       \
  ", %112, %113, %114, %115, %116, %117, %118, %119"
#define UNTAX_NAMES_128 \
  UNTAX_NAMES_120       \
  ", %120, %121, %122, %123, %124, %125, %126, %127"

#define UNTAX_SUMS_AT(i)                                                              \
  "+f"(d[i]), "+f"(d[(i) + 1]), "+f"(d[(i) + 2]), "+f"(d[(i) + 3]), "+f"(d[(i) + 4]), \
      "+f"(d[(i) + 5]), "+f"(d[(i) + 6]), "+f"(d[(i) + 7])
#define UNTAX_SUMS_8 UNTAX_SUMS_AT(0)
#define UNTAX_SUMS_16 UNTAX_SUMS_8, UNTAX_SUMS_AT(8)
#define UNTAX_SUMS_32 UNTAX_SUMS_16, UNTAX_SUMS_AT(16), UNTAX_SUMS_AT(24)
#define UNTAX_SUMS_40 UNTAX_SUMS_32, UNTAX_SUMS_AT(32)
#define UNTAX_SUMS_48 UNTAX_SUMS_40, UNTAX_SUMS_AT(40)
#define UNTAX_SUMS_56 UNTAX_SUMS_48, UNTAX_SUMS_AT(48)
#define UNTAX_SUMS_64 UNTAX_SUMS_56, UNTAX_SUMS_AT(56)
#define UNTAX_SUMS_72 UNTAX_SUMS_64, UNTAX_SUMS_AT(64)
#define UNTAX_SUMS_80 UNTAX_SUMS_72, UNTAX_SUMS_AT(72)
#define UNTAX_SUMS_88 UNTAX_SUMS_80, UNTAX_SUMS_AT(80)
#define UNTAX_SUMS_96 UNTAX_SUMS_88, UNTAX_SUMS_AT(88)
#define UNTAX_SUMS_104 UNTAX_SUMS_96, UNTAX_SUMS_AT(96)
#define UNTAX_SUMS_112 UNTAX_SUMS_104, UNTAX_SUMS_AT(104)
#define UNTAX_SUMS_120 UNTAX_SUMS_112, UNTAX_SUMS_AT(112)
#define UNTAX_SUMS_128 UNTAX_SUMS_120, UNTAX_SUMS_AT(120)

/// x, y and whether to add are the operands behind the sums. `layout` says of those of them that
/// lie in shared memory whether rows lie along the depth of the product (1) or not.
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

/// d = x * y^T, or that added to d: 64 x `columns` sums, 16 elements deep, by a warpgroup. x and y
/// are descriptors. Asynchronous: see wgmma_fence.
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
UNTAX_MULTIPLY(176, 88, "%88, %89", "%90")
UNTAX_MULTIPLY(192, 96, "%96, %97", "%98")
UNTAX_MULTIPLY(224, 112, "%112, %113", "%114")
UNTAX_MULTIPLY(256, 128, "%128, %129", "%130")

/// d = x * y, or that added to d. x lies in registers, two elements each, where sums of an earlier
/// product have their row and column; y describes rows of `columns` elements. Asynchronous, also in
/// what it reads of x: see wgmma_fence.
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
#undef UNTAX_SUMS_AT
#undef UNTAX_SUMS_8
#undef UNTAX_SUMS_16
#undef UNTAX_SUMS_32
#undef UNTAX_SUMS_40
#undef UNTAX_SUMS_48
#undef UNTAX_SUMS_56
#undef UNTAX_SUMS_64
#undef UNTAX_SUMS_72
#undef UNTAX_SUMS_80
#undef UNTAX_SUMS_88
#undef UNTAX_SUMS_96
#undef UNTAX_SUMS_104
#undef UNTAX_SUMS_112
#undef UNTAX_SUMS_120
#undef UNTAX_SUMS_128
#undef UNTAX_NAMES_8
#undef UNTAX_NAMES_16
#undef UNTAX_NAMES_32
#undef UNTAX_NAMES_40
#undef UNTAX_NAMES_48
#undef UNTAX_NAMES_56
#undef UNTAX_NAMES_64
#undef UNTAX_NAMES_72
#undef UNTAX_NAMES_80
#undef UNTAX_NAMES_88
#undef UNTAX_NAMES_96
#undef UNTAX_NAMES_104
#undef UNTAX_NAMES_112
#undef UNTAX_NAMES_120
#undef UNTAX_NAMES_128

}  // namespace untax::gpu

#pragma once

#include <cstdint>

#include "engines/gpu/collectives/element.cuh"
#include "engines/gpu/flash_attention/arguments.hpp"

namespace untax::gpu {

/// Transposes the 4 x 4 words of four consecutive threads: word i of thread j becomes word j of
/// thread i.
__device__ inline void transpose_in_four(std::uint32_t (&words)[4]) {
  const unsigned everybody = 0xffffffffU;
  const bool odd = threadIdx.x % 2 != 0;
  const bool high = threadIdx.x % 4 >= 2;
#pragma unroll
  for (int i = 0; i < 4; i += 2) {
    const std::uint32_t got = __shfl_xor_sync(everybody, odd ? words[i] : words[i + 1], 1);
    words[i] = odd ? got : words[i];
    words[i + 1] = odd ? words[i + 1] : got;
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const std::uint32_t got = __shfl_xor_sync(everybody, high ? words[i] : words[i + 2], 2);
    words[i] = high ? got : words[i];
    words[i + 2] = high ? words[i + 2] : got;
  }
}

/// Stores the 64 rows of a warpgroup, from row `first` of the tile on, from registers: `sums`
/// divided by `total`, which must be reduced already, and the log-sum-exp of the scaled logits.
/// Rows that see no keys become zeros, and their log-sum-exp minus infinity.
template <class Element, int width>
__device__ __forceinline__ void store_rows(const flash_arguments& a, const flash_tile& tile,
                                           int first, const float (&most)[2],
                                           const float (&total)[2], float scale_to_base_2,
                                           const float (&sums)[width / 2]) {
  const int warp = static_cast<int>(threadIdx.x) % 128 / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int in_tile = first + warp * 16 + lane / 4 + 8 * r;
    const bool there = in_tile < tile.rows;
    const std::int64_t row = tile.row + in_tile;
    const float part = total[r] > 0 ? 1 / total[r] : 0;
    if (a.log_sums != nullptr && there && lane % 4 == 0) {
      constexpr float ln_of_2 = 0.69314718055994530942F;
      a.log_sums[row * a.shape.heads + tile.head] =
          total[r] > 0 ? (most[r] * scale_to_base_2 + log2f(total[r])) * ln_of_2
                       : __int_as_float(0xff800000);
    }
    auto* const out =
        static_cast<std::uint16_t*>(a.out) + row * a.out_stride + tile.head * width + lane % 4 * 8;
#pragma unroll
    for (int j = 0; j < width / 32; ++j) {
      std::uint32_t words[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float* const two = sums + 4 * (4 * j + i) + 2 * r;
        const float scaled[2] = {two[0] * part, two[1] * part};
        words[i] = word_of_elements<Element>::narrow(scaled);
      }
      transpose_in_four(words);
      if (there)
        *reinterpret_cast<uint4*>(out + 32 * j) =
            make_uint4(words[0], words[1], words[2], words[3]);
    }
  }
}

}  // namespace untax::gpu

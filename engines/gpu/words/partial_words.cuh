#pragma once

#include <cstdint>

#include "engines/gpu/channel/mutant.hpp"
#include "engines/gpu/matrix/pairs.cuh"
#include "engines/gpu/sm90/ptx/sum_words.cuh"

namespace untax::gpu {

// Partial sums of a lane as words that are never zero: their bits are inverted. Only one NaN would
// become zero; it is sent as another NaN.

[[nodiscard]] __device__ inline std::uint32_t as_word(std::uint32_t bits) {
  return max(~bits, left_out(mutant::words_marker) ? 0U : 1U);
}
[[nodiscard]] __device__ inline uint4 as_words(const uint4& bits) {
  return make_uint4(as_word(bits.x), as_word(bits.y), as_word(bits.z), as_word(bits.w));
}
[[nodiscard]] __device__ inline uint4 from_words(const uint4& w) {
  return make_uint4(~w.x, ~w.y, ~w.z, ~w.w);
}

/// Four partial sums of a lane as they are sent: as fp32, or as elements of type T.
template <class T, bool halves>
struct partial_words;

template <class T>
struct partial_words<T, false> {
  using words = uint4;

  [[nodiscard]] __device__ static uint4 of(const float* sums) {
    return make_uint4(as_word(__float_as_uint(sums[0])), as_word(__float_as_uint(sums[1])),
                      as_word(__float_as_uint(sums[2])), as_word(__float_as_uint(sums[3])));
  }
  [[nodiscard]] __device__ static float4 sums_of(const uint4& w) {
    return make_float4(__uint_as_float(~w.x), __uint_as_float(~w.y), __uint_as_float(~w.z),
                       __uint_as_float(~w.w));
  }
  [[nodiscard]] __device__ static bool have_arrived(const uint4& w) {
    return w.x != 0 && w.y != 0 && w.z != 0 && w.w != 0;
  }
  [[nodiscard]] __device__ static uint4 nothing() { return make_uint4(0, 0, 0, 0); }
};

template <class T>
struct partial_words<T, true> {
  using words = uint2;

  [[nodiscard]] __device__ static uint2 of(const float* sums) {
    return make_uint2(as_word(two_halves(sums[0], sums[1], T{})),
                      as_word(two_halves(sums[2], sums[3], T{})));
  }
  [[nodiscard]] __device__ static float4 sums_of(const uint2& w) {
    const float2 first = two_floats(~w.x, T{});
    const float2 second = two_floats(~w.y, T{});
    return make_float4(first.x, first.y, second.x, second.y);
  }
  [[nodiscard]] __device__ static bool have_arrived(const uint2& w) { return w.x != 0 && w.y != 0; }
  [[nodiscard]] __device__ static uint2 nothing() { return make_uint2(0, 0); }
};

}  // namespace untax::gpu

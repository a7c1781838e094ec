#pragma once

#include <cstdint>

#include "engines/gpu/norm/norm_rows.hpp"
#include "engines/gpu/words/partial_words.cuh"

namespace untax::gpu {

/// Eight elements as floats, loaded and stored as packed pairs.
template <class T>
struct eight {
  float v[norm_rows::elements];

  __device__ static eight of(const uint4& pairs) {
    eight e;
    e.put(0, pairs.x);
    e.put(1, pairs.y);
    e.put(2, pairs.z);
    e.put(3, pairs.w);
    return e;
  }
  [[nodiscard]] __device__ uint4 pairs() const {
    return make_uint4(pair(0), pair(1), pair(2), pair(3));
  }
  __device__ void add(const eight& more) {
#pragma unroll
    for (int i = 0; i < norm_rows::elements; ++i) v[i] += more.v[i];
  }

 private:
  __device__ void put(int i, std::uint32_t bits) {
    const float2 two = two_floats(bits, T{});
    v[2 * i] = two.x;
    v[2 * i + 1] = two.y;
  }
  [[nodiscard]] __device__ std::uint32_t pair(int i) const {
    return two_halves(v[2 * i], v[2 * i + 1], T{});
  }
};

}  // namespace untax::gpu

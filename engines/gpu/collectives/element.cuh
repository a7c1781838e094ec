#pragma once

#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <untax/core/half.hpp>
#include <untax/core/reduction.hpp>

namespace untax::gpu {

/// Converts elements of a 32-bit word to fp32 and back. Narrowing rounds to nearest even.
template <class Element>
struct word_of_elements;

template <>
struct word_of_elements<float> {
  static constexpr int each = 1;
  using bits = std::uint32_t;  ///< of one element

  __device__ static void widen(std::uint32_t word, float* to) { to[0] = __uint_as_float(word); }
  [[nodiscard]] __device__ static std::uint32_t narrow(const float* from) {
    return __float_as_uint(from[0]);
  }
};

template <>
struct word_of_elements<bf16> {
  static constexpr int each = 2;
  using bits = std::uint16_t;

  __device__ static void widen(std::uint32_t word, float* to) {
    to[0] = __uint_as_float(word << 16U);
    to[1] = __uint_as_float(word & 0xffff0000U);
  }
  [[nodiscard]] __device__ static std::uint32_t narrow(const float* from) {
    const __nv_bfloat162 both = __floats2bfloat162_rn(from[0], from[1]);
    return *reinterpret_cast<const std::uint32_t*>(&both);
  }
};

template <>
struct word_of_elements<f16> {
  static constexpr int each = 2;
  using bits = std::uint16_t;

  __device__ static void widen(std::uint32_t word, float* to) {
    const float2 both = __half22float2(*reinterpret_cast<const __half2*>(&word));
    to[0] = both.x;
    to[1] = both.y;
  }
  [[nodiscard]] __device__ static std::uint32_t narrow(const float* from) {
    const __half2 both = __floats2half2_rn(from[0], from[1]);
    return *reinterpret_cast<const std::uint32_t*>(&both);
  }
};

/// Contributions of ranks to `words` words of a result, combined one after the other in fp32 and
/// rounded once.
template <class Element, int words>
class combination {
 public:
  static constexpr int elements = words * word_of_elements<Element>::each;

  /// Starts with the first contribution.
  __device__ void start(const std::uint32_t* from) { widen(from, so_far_); }
  /// Adds the next contribution, in rank order.
  __device__ void add(reduction how, const std::uint32_t* from) {
    float next[elements];
    widen(from, next);
    if (how == reduction::sum) return all<reduction::sum>(next);
    if (how == reduction::max) return all<reduction::max>(next);
    return all<reduction::min>(next);
  }
  __device__ void finish(std::uint32_t* to) const {
#pragma unroll
    for (int i = 0; i < words; ++i)
      to[i] = word_of_elements<Element>::narrow(so_far_ + i * word_of_elements<Element>::each);
  }

 private:
  __device__ static void widen(const std::uint32_t* from, float* to) {
#pragma unroll
    for (int i = 0; i < words; ++i)
      word_of_elements<Element>::widen(from[i], to + i * word_of_elements<Element>::each);
  }
  template <reduction how>
  __device__ void all(const float* next) {
#pragma unroll
    for (int i = 0; i < elements; ++i) so_far_[i] = combined(how, so_far_[i], next[i]);
  }

  float so_far_[elements];
};

}  // namespace untax::gpu

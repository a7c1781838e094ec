#pragma once

#include <cstdint>

#include "engines/sm90/attention/arguments.hpp"
#include "engines/sm90/attention/math.cuh"
#include "engines/sm90/transfer/element.cuh"

namespace untax::sm90 {

/// Partial results as they travel: for each query head the elements, then two statistics whose sum
/// is the logarithm, to base 2, of the sum of the exponentials. `Wire` is float or bf16. Two words
/// go into a packet; the statistics have one of their own, the last.
template <class Wire>
struct partial_format {
  using words = word_of_elements<Wire>;
  static constexpr int each = words::each;  ///< elements of a word
  static constexpr int columns = 2 * each;  ///< elements of a packet

  [[nodiscard]] __device__ static constexpr int packets(int width) { return width / columns + 1; }
  [[nodiscard]] __device__ static constexpr int row_words(int width) {
    return width / each + 2 / each;
  }

  /// Flags of a row: one for each so many packets of elements.
  static constexpr int packets_of_flag = 8;
  [[nodiscard]] __device__ static constexpr int flags(int width) {
    return (packets(width) + packets_of_flag - 2) / packets_of_flag;
  }

  /// The elements of a packet.
  [[nodiscard]] __device__ static std::uint64_t data(const float* elements) {
    return words::narrow(elements) | std::uint64_t{words::narrow(elements + each)} << 32U;
  }
  /// Two of few bits keep together what one of many has.
  [[nodiscard]] __device__ static std::uint64_t data(const float2& statistics) {
    float both[2] = {statistics.x, statistics.y};
    if constexpr (each == 1) return data(both);
    const float whole = statistics.x + statistics.y;
    both[0] = whole;
    both[1] = 0;
    float high[2];
    words::widen(words::narrow(both), high);
    both[1] = whole == high[0] ? 0 : whole - high[0];
    return words::narrow(both);
  }
};

/// What all ranks have for one packet of a row, combined in rank order.
template <class Element, class Wire>
class rank_combination {
  using format = partial_format<Wire>;

 public:
  static constexpr int most_ranks = 8;

  /// Statistics of all ranks first, so that every element is weighted once.
  __device__ void weigh(const std::uint64_t (&statistics)[most_ranks], int ranks) {
    float high = __int_as_float(0xff800000);
#pragma unroll
    for (int k = 0; k < most_ranks; ++k) {
      float pair[4];
      widen(statistics[k], pair);
      weights_[k] = k < ranks ? pair[0] + pair[1] : __int_as_float(0xff800000);
      high = fmaxf(high, weights_[k]);
    }
    const float reference = high == __int_as_float(0xff800000) ? 0 : high;
    float total = 0;
#pragma unroll
    for (int k = 0; k < most_ranks; ++k) {
      weights_[k] = power_of_2(weights_[k] - reference);
      total += weights_[k];
    }
    part_ = total > 0 ? 1 / total : 0;
  }

  /// The elements of a packet, in fp32 and rounded once, to the result.
  __device__ void combine(const std::uint64_t (&data)[most_ranks], int ranks, void* to) const {
    float sum[format::columns] = {};
#pragma unroll
    for (int k = 0; k < most_ranks; ++k) {
      if (k >= ranks) continue;
      float elements[4];
      widen(data[k], elements);
#pragma unroll
      for (int i = 0; i < format::columns; ++i) sum[i] += weights_[k] * elements[i];
    }
#pragma unroll
    for (int i = 0; i < format::columns; ++i) sum[i] *= part_;
    auto* words = static_cast<std::uint32_t*>(to);
#pragma unroll
    for (int i = 0; i < format::columns / 2; ++i)
      words[i] = word_of_elements<Element>::narrow(sum + 2 * i);
  }

 private:
  __device__ static void widen(std::uint64_t data, float* to) {
    format::words::widen(static_cast<std::uint32_t>(data), to);
    format::words::widen(static_cast<std::uint32_t>(data >> 32U), to + format::each);
  }

  float weights_[most_ranks];
  float part_;
};

}  // namespace untax::sm90

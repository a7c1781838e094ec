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

/// What all ranks have of a row, combined in rank order. Lane k of a warp knows the statistics of
/// rank k.
template <class Element, class Wire>
class rank_combination {
  using format = partial_format<Wire>;

 public:
  static constexpr int most_ranks = most_attention_ranks;

  /// Statistics of all ranks first, so that every element is weighted once. By all lanes.
  __device__ rank_combination(std::uint64_t statistics, int ranks) {
    float pair[4];
    widen(statistics, pair);
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const float mine = lane < ranks ? pair[0] + pair[1] : __int_as_float(0xff800000);
    float high = mine;
#pragma unroll
    for (int away = 16; away > 0; away /= 2)
      high = fmaxf(high, __shfl_xor_sync(everybody, high, away));
    weight_ = power_of_2(mine - (high == __int_as_float(0xff800000) ? 0 : high));
    float total = 0;
#pragma unroll
    for (int k = 0; k < most_ranks; ++k) total += weight_of(k);
    part_ = total > 0 ? 1 / total : 0;
  }
  /// By all lanes.
  [[nodiscard]] __device__ float weight_of(int rank) const {
    return __shfl_sync(everybody, weight_, rank);
  }

  /// What a sum of elements has to be multiplied by.
  [[nodiscard]] __device__ float part() const { return part_; }

  /// Adds the elements of a packet of one rank, in fp32.
  __device__ static void add(float weight, std::uint64_t data, float (&sum)[format::columns]) {
    float elements[4];
    widen(data, elements);
#pragma unroll
    for (int i = 0; i < format::columns; ++i) sum[i] += weight * elements[i];
  }
  /// Rounded once, to the result.
  __device__ static void store(const float (&sum)[format::columns], float part, void* to) {
    float whole[format::columns];
#pragma unroll
    for (int i = 0; i < format::columns; ++i) whole[i] = sum[i] * part;
    auto* words = static_cast<std::uint32_t*>(to);
#pragma unroll
    for (int i = 0; i < format::columns / 2; ++i)
      words[i] = word_of_elements<Element>::narrow(whole + 2 * i);
  }
  /// A packet of the only rank, to the result.
  __device__ static void copy(std::uint64_t data, void* to) {
    float sum[format::columns] = {};
    add(1, data, sum);
    store(sum, 1, to);
  }

 private:
  static constexpr unsigned everybody = 0xffffffffU;

  __device__ static void widen(std::uint64_t data, float* to) {
    format::words::widen(static_cast<std::uint32_t>(data), to);
    format::words::widen(static_cast<std::uint32_t>(data >> 32U), to + format::each);
  }
  float weight_;
  float part_;
};

}  // namespace untax::sm90

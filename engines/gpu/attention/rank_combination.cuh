#pragma once

#include <cstdint>

#include "engines/gpu/attention/arguments.hpp"
#include "engines/gpu/attention/log_sum_exp.cuh"
#include "engines/gpu/attention/mma_consumer.cuh"
#include "engines/gpu/attention/partial.cuh"

namespace untax::gpu {

/// Combines the partial results of all ranks for a row, in rank order. Lane k of the warp holds the
/// statistics of rank k.
template <class Element, class Wire>
class rank_combination {
  using format = partial_format<Wire>;
  using four = typename format::four;

 public:
  static constexpr int most_ranks = most_attention_ranks;

  /// Computes the weights of all ranks first, so each element is weighted once. All lanes call it.
  __device__ rank_combination(std::uint64_t statistics, int ranks) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const float mine = lane < ranks ? format::logarithm(statistics) : log_of_nothing();
    float high = mine;
#pragma unroll
    for (int away = 16; away > 0; away /= 2)
      high = fmaxf(high, __shfl_xor_sync(everybody, high, away));
    weight_ = power_of_2(mine - reference_of(high));
    float total = 0;
#pragma unroll
    for (int k = 0; k < most_ranks; ++k) total += weight_of(k);
    part_ = share_of(total);
  }
  /// The weight of a rank. All lanes of the warp must call this.
  [[nodiscard]] __device__ float weight_of(int rank) const {
    return __shfl_sync(everybody, weight_, rank);
  }

  /// The factor that normalises a weighted sum of elements.
  [[nodiscard]] __device__ float part() const { return part_; }

  /// Adds four elements of one rank, in fp32.
  __device__ static void add(float weight, const four& from, float (&sum)[4]) {
    float elements[4];
    format::widen(from, elements);
#pragma unroll
    for (int i = 0; i < 4; ++i) sum[i] += weight * elements[i];
  }
  /// Normalises a sum and stores it to the result, rounded once.
  __device__ static void store(const float (&sum)[4], float part, void* to) {
    float whole[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) whole[i] = sum[i] * part;
    auto* words = static_cast<std::uint32_t*>(to);
#pragma unroll
    for (int i = 0; i < 2; ++i) words[i] = word_of_elements<Element>::narrow(whole + 2 * i);
  }
  /// Stores four elements of the only rank to the result.
  __device__ static void copy(const four& from, void* to) {
    float sum[4] = {};
    add(1, from, sum);
    store(sum, 1, to);
  }

 private:
  static constexpr unsigned everybody = 0xffffffffU;

  float weight_;
  float part_;
};

}  // namespace untax::gpu

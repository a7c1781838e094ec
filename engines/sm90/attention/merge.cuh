#pragma once

#include <cstdint>

#include "engines/sm90/attention/math.cuh"

namespace untax::sm90 {

/// The results of the warps of a block become one, through shared memory, in the order of the
/// warps.
template <class Element, int width>
class block_merge {
  using config = attention_config<width>;
  using warp_result = warp_attention<Element, width>;

 public:
  __device__ block_merge(float* memory, int group)
      : memory_(memory),
        statistics_(reinterpret_cast<float2*>(memory + config::streaming * config::merged_floats)),
        group_(group) {}

  /// The streaming threads wait for each other; those of a warp need not come together.
  __device__ static void synchronise() {
    asm volatile("barrier.sync 1, %0;" : : "n"(config::streaming_threads) : "memory");
  }

  /// Hands every four elements of every row to `take(row, column, elements, statistics)`, by one
  /// thread or another. Elements are normalised; statistics are the maximum and the logarithm of
  /// the sum. By all streaming threads, of which none may still read what an earlier call has left.
  template <class Take>
  __device__ void operator()(const warp_result& mine, const Take& take) const {
    const int thread = thread_again();
    put_statistics(mine, thread);
#pragma unroll 1
    for (int r = 0; r * config::merged_rows < group_; ++r) {
#pragma unroll
      for (int c = 0; c < width / config::merged_columns; ++c) {
        if (r + c > 0) synchronise();
        put(mine, r, c, thread);
        synchronise();
        hand_over(r, c, thread, take);
      }
    }
  }

 private:
  /// Asked for again by every call: what follows from it would otherwise be computed before the
  /// main loop, and hold registers there.
  [[nodiscard]] __device__ static int thread_again() {
    int thread = 0;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
    return thread;
  }

  __device__ void put_statistics(const warp_result& mine, int thread) const {
    if (thread % 4 != 0) return;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      statistics_[thread / 32 * most_heads_of_group + thread % 32 / 4 + 8 * r] = {mine.most[r],
                                                                                  mine.total[r]};
    }
  }
  __device__ void put(const warp_result& mine, int r, int c, int thread) const {
    float* const to = memory_ + thread / 32 * config::merged_floats +
                      thread % 32 / 4 * config::merged_pitch + thread % 4 * 2;
#pragma unroll
    for (int j = 0; j < config::merged_columns / 8; ++j) {
      const auto& sum = mine.sum[c * (config::merged_columns / 8) + j];
      *reinterpret_cast<float2*>(to + j * 8) = {r == 0 ? sum[0] : sum[2], r == 0 ? sum[1] : sum[3]};
    }
  }

  template <class Take>
  __device__ void hand_over(int r, int c, int thread, const Take& take) const {
    constexpr int quads = config::merged_columns / 4;
#pragma unroll 1
    for (int i = thread; i < config::merged_rows * quads; i += config::streaming_threads) {
      const int g = r * config::merged_rows + i / quads;
      if (g >= group_) break;
      const int column = i % quads * 4;
      float2 statistics[config::streaming];
      float high = warp_result::nothing();
#pragma unroll
      for (int w = 0; w < config::streaming; ++w) {
        statistics[w] = statistics_[w * most_heads_of_group + g];
        high = fmaxf(high, statistics[w].x);
      }
      const float reference = high == warp_result::nothing() ? 0 : high;
      float total = 0;
      float sum[4] = {};
#pragma unroll
      for (int w = 0; w < config::streaming; ++w) {
        const float weight = power_of_2(statistics[w].x - reference);
        const float4 four = *reinterpret_cast<const float4*>(
            memory_ + w * config::merged_floats + i / quads * config::merged_pitch + column);
        total += weight * statistics[w].y;
        sum[0] += weight * four.x;
        sum[1] += weight * four.y;
        sum[2] += weight * four.z;
        sum[3] += weight * four.w;
      }
      const float part = total > 0 ? 1 / total : 0;
      for (float& s : sum) s *= part;
      take(g, c * config::merged_columns + column, sum, float2{high, total > 0 ? log2f(total) : 0});
    }
  }

  float* memory_;
  float2* statistics_;  // [warp][row]
  int group_;
};

}  // namespace untax::sm90

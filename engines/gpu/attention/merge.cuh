#pragma once

#include <cstddef>
#include <cstdint>

#include "engines/gpu/attention/log_sum_exp.cuh"
#include "engines/gpu/attention/mma_consumer.cuh"
#include "engines/gpu/sm90/ptx/barrier.cuh"

namespace untax::gpu {

/// Merges the results of a segment. The streaming warps store their results in shared memory and
/// continue. The merging warps combine these into one result, in the order of the streaming warps.
template <class Element, int width>
class block_merge {
  using config = attention_config<width>;
  using warp_result = warp_attention<Element, width>;

 public:
  static constexpr std::size_t shared_bytes =
      sizeof(float) * config::streaming * (config::merged_floats + config::statistics_floats) +
      4 * sizeof(stage_barrier);

  /// `group`: number of rows to merge, one per head; `merging`: number of merging warps.
  __device__ block_merge(std::byte* memory, int group, int merging)
      : sums_(reinterpret_cast<float*>(memory)),
        statistics_(reinterpret_cast<float2*>(sums_ + config::streaming * config::merged_floats)),
        barriers_(reinterpret_cast<stage_barrier*>(statistics_ +
                                                   config::streaming * most_heads_of_group)),
        group_(group),
        merging_(merging) {}

  /// One thread must call this before any other thread uses the object.
  __device__ void init() const {
    begun().init(config::streaming);
    left().init(config::streaming);
    ended().init(config::streaming);
    taken().init(static_cast<std::uint32_t>(merging_));
  }

  /// Each streaming warp calls this once it has issued its first loads.
  __device__ void begin() const {
    if (warp_result::lane() == 0) begun().arrive();
  }
  /// Waits until all streaming warps have called begin().
  __device__ void await_streams() const { begun().wait(0); }

  /// Stores the result of the calling streaming warp. Waits first until the merging warps have read
  /// the results of the previous segment. `segment` counts from 0. All lanes must call this.
  __device__ void leave(const warp_result& mine, int segment) const {
    if (segment > 0) taken().wait(static_cast<std::uint32_t>(segment - 1) & 1U);
    put(mine, thread_again());
    __syncwarp();
    if (warp_result::lane() == 0) left().arrive();
  }

  /// Each streaming warp calls this once it has stored its last result.
  __device__ void end() const {
    if (warp_result::lane() == 0) ended().arrive();
  }
  /// Waits until all streaming warps have called end().
  __device__ void await_end() const { ended().wait(0); }

  /// Merges a segment. For each four elements of a row, one thread calls `take(row, column,
  /// elements, statistics)`. Elements are normalised; statistics are the maximum and the log2 of
  /// the sum. All lanes of merging warp `number` must call this, for every segment in order.
  template <class Take>
  __device__ void take(int segment, int number, const Take& take) const {
    constexpr int fours = width / 4;
    left().wait(static_cast<std::uint32_t>(segment) & 1U);
#pragma unroll 1
    for (int i = number * 32 + warp_result::lane(); i < group_ * fours; i += merging_ * 32) {
      const int g = i / fours;
      const int column = i % fours * 4;
      float2 statistics[config::streaming];
      float high = log_of_nothing();
#pragma unroll
      for (int w = 0; w < config::streaming; ++w) {
        statistics[w] = statistics_[w * most_heads_of_group + g];
        high = fmaxf(high, statistics[w].x);
      }
      const float reference = reference_of(high);
      float total = 0;
      float sum[4] = {};
#pragma unroll
      for (int w = 0; w < config::streaming; ++w) {
        const float weight = power_of_2(statistics[w].x - reference);
        const float4 four = *reinterpret_cast<const float4*>(sums_ + w * config::merged_floats +
                                                             g * config::merged_pitch + column);
        total += weight * statistics[w].y;
        sum[0] += weight * four.x;
        sum[1] += weight * four.y;
        sum[2] += weight * four.z;
        sum[3] += weight * four.w;
      }
      const float part = share_of(total);
      for (float& s : sum) s *= part;
      take(g, column, sum, float2{high, total > 0 ? log2f(total) : 0});
    }
    __syncwarp();
    if (warp_result::lane() == 0) taken().arrive();
  }

 private:
  [[nodiscard]] __device__ stage_barrier& left() const { return barriers_[0]; }
  [[nodiscard]] __device__ stage_barrier& taken() const { return barriers_[1]; }
  [[nodiscard]] __device__ stage_barrier& ended() const { return barriers_[2]; }
  [[nodiscard]] __device__ stage_barrier& begun() const { return barriers_[3]; }

  /// Reads the thread index at every call. Otherwise the compiler would compute addresses from it
  /// before the main loop, and keep them in registers during the loop.
  [[nodiscard]] __device__ static int thread_again() {
    int thread = 0;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
    return thread;
  }

  __device__ void put(const warp_result& mine, int thread) const {
    const int warp = thread / 32;
    const int row = thread % 32 / 4;
    float* const to = sums_ + warp * config::merged_floats + row * config::merged_pitch;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      if (8 * r >= group_) break;
      if (thread % 4 == 0)
        statistics_[warp * most_heads_of_group + row + 8 * r] = {mine.most[r], mine.total[r]};
#pragma unroll
      for (int j = 0; j < width / 8; ++j) {
        *reinterpret_cast<float2*>(to + 8 * r * config::merged_pitch + thread % 4 * 2 + j * 8) = {
            mine.sum[j][2 * r], mine.sum[j][2 * r + 1]};
      }
    }
  }

  float* sums_;         // [warp][row]
  float2* statistics_;  // [warp][row]
  stage_barrier* barriers_;
  int group_;
  int merging_;
};

}  // namespace untax::gpu

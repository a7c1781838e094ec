#pragma once

#include <cstdint>

#include "engines/gpu/attention/arguments.hpp"
#include "engines/gpu/attention/config.cuh"
#include "engines/gpu/attention/log_sum_exp.cuh"
#include "engines/gpu/attention/work.cuh"
#include "engines/gpu/collectives/element.cuh"
#include "engines/gpu/sm90/mma/warp.cuh"
#include "engines/gpu/sm90/ptx/floats.cuh"

namespace untax::gpu {

/// The state of one warp's attention for up to 16 query heads, the rows of its tensor core
/// instructions: a running maximum and sum, and the sum of values, not normalised. A lane holds
/// rows lane / 4 and lane / 4 + 8, and of every eight columns 2 * (lane % 4) and the next one.
template <class Element, int width>
class warp_attention {
  using config = attention_config<width>;
  using words = word_of_elements<Element>;
  static constexpr int key_tiles = config::keys / 8;
  static constexpr int steps = width / 16;
  static constexpr int columns = width / 8;

 public:
  /// Starts an item, whose queries are at `queries` in shared memory.
  __device__ void start(const attention_shape& shape, std::uint32_t queries) {
    queries_at_ =
        queries + static_cast<std::uint32_t>(lane() % 16 * config::query_pitch + lane() / 16 * 16);
    capped_ = shape.logit_cap > 0;
    scale_ = capped_ ? shape.scale / shape.logit_cap : shape.scale * log2_of_e;
    cap_ = shape.logit_cap * log2_of_e;
    for (int r = 0; r < 2; ++r) {
      most[r] = log_of_nothing();
      total[r] = 0;
    }
#pragma unroll
    for (int j = 0; j < columns; ++j) {
#pragma unroll
      for (int i = 0; i < 4; ++i) sum[j][i] = 0;
    }
  }

  /// Consumes the tile at `stage` in shared memory, of which the first `keys_left` keys exist.
  __device__ void take(std::uint32_t stage, int keys_left) {
    float logits[key_tiles][4] = {};
    multiply_keys(stage, logits);
    scale(logits);
    if (keys_left < config::keys) hide(logits, keys_left);
    weigh(logits);
    multiply_values(stage + config::keys * config::row_bytes, logits);
  }
  /// Called after the last tile. Reduces `total`, so that all lanes of a row hold the row's sum.
  __device__ void finish() {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      total[r] += __shfl_xor_sync(everybody, total[r], 1);
      total[r] += __shfl_xor_sync(everybody, total[r], 2);
    }
  }

  float most[2];
  float total[2];
  float sum[columns][4];

  [[nodiscard]] __device__ static int lane() { return static_cast<int>(threadIdx.x) % 32; }

 private:
  static constexpr unsigned everybody = 0xffffffffU;

  __device__ void multiply_keys(std::uint32_t stage, float (&logits)[key_tiles][4]) {
    const int matrix = lane() / 8;
    const int row = matrix / 2 * 8 + lane() % 8;
    const auto at = stage + static_cast<std::uint32_t>(row * config::row_bytes);
    const auto twist = static_cast<std::uint32_t>((matrix % 2) ^ (lane() % 8)) << 4U;
#pragma unroll
    for (int k = 0; k < steps; ++k) {
      std::uint32_t queries[4];
      load_matrices(queries, queries_at_ + k * 32);
#pragma unroll
      for (int pair = 0; pair < key_tiles / 2; ++pair) {
        std::uint32_t keys[4];
        load_matrices(keys, at + pair * 16 * config::row_bytes + ((k * 32U) ^ twist));
        multiply_by_warp<Element>(logits[2 * pair], queries, keys[0], keys[1]);
        multiply_by_warp<Element>(logits[2 * pair + 1], queries, keys[2], keys[3]);
      }
    }
  }

  __device__ void scale(float (&logits)[key_tiles][4]) const {
#pragma unroll
    for (int t = 0; t < key_tiles; ++t) {
#pragma unroll
      for (int i = 0; i < 4; ++i) logits[t][i] *= scale_;
    }
    if (!capped_) return;
#pragma unroll
    for (int t = 0; t < key_tiles; ++t) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        // The hyperbolic tangent. The instruction for it has an error of 2^-11, which a cap of 50
        // would turn into an error of 2 % in a weight.
        const float power = power_of_2(2 * log2_of_e * logits[t][i]);
        logits[t][i] = cap_ * (1 - __fdividef(2.0F, power + 1));
      }
    }
  }

  __device__ static void hide(float (&logits)[key_tiles][4], int keys_left) {
#pragma unroll
    for (int t = 0; t < key_tiles; ++t) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (t * 8 + 2 * (lane() % 4) + i % 2 >= keys_left) logits[t][i] = log_of_nothing();
      }
    }
  }

  /// Replaces logits by weights relative to the maximum so far; rescales the sums if it has risen.
  __device__ void weigh(float (&logits)[key_tiles][4]) {
    float kept[2];
    float reference[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float high = most[r];
#pragma unroll
      for (int t = 0; t < key_tiles; ++t)
        high = fmaxf(high, fmaxf(logits[t][2 * r], logits[t][2 * r + 1]));
      high = fmaxf(high, __shfl_xor_sync(everybody, high, 1));
      high = fmaxf(high, __shfl_xor_sync(everybody, high, 2));
      reference[r] = reference_of(high);
      kept[r] = power_of_2(most[r] - reference[r]);
      most[r] = high;
    }
    if (__any_sync(everybody, kept[0] != 1 || kept[1] != 1)) {
#pragma unroll
      for (int r = 0; r < 2; ++r) total[r] *= kept[r];
#pragma unroll
      for (int j = 0; j < columns; ++j) {
#pragma unroll
        for (int i = 0; i < 4; ++i) sum[j][i] *= kept[i / 2];
      }
    }
#pragma unroll
    for (int t = 0; t < key_tiles; ++t) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        logits[t][i] = power_of_2(logits[t][i] - reference[i / 2]);
        total[i / 2] += logits[t][i];
      }
    }
  }

  __device__ void multiply_values(std::uint32_t stage, const float (&weights)[key_tiles][4]) {
    const int matrix = lane() / 8;
    const int row = matrix % 2 * 8 + lane() % 8;
    const auto at = stage + static_cast<std::uint32_t>(row * config::row_bytes);
    const auto twist = static_cast<std::uint32_t>((matrix / 2) ^ (lane() % 8)) << 4U;
#pragma unroll
    for (int pair = 0; pair < key_tiles / 2; ++pair) {
      std::uint32_t packed[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) packed[i] = words::narrow(weights[2 * pair + i / 2] + i % 2 * 2);
#pragma unroll
      for (int j = 0; j < columns / 2; ++j) {
        std::uint32_t values[4];
        load_transposed(values, at + pair * 16 * config::row_bytes + ((j * 32U) ^ twist));
        multiply_by_warp<Element>(sum[2 * j], packed, values[0], values[1]);
        multiply_by_warp<Element>(sum[2 * j + 1], packed, values[2], values[3]);
      }
    }
  }

  std::uint32_t queries_at_;
  float scale_;
  float cap_;
  bool capped_;
};

}  // namespace untax::gpu

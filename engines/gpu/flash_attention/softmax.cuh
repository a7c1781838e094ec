#pragma once

#include <cstdint>

#include "engines/gpu/sm90/ptx/floats.cuh"

namespace untax::gpu {

/// The running softmax of two rows, shared by four consecutive threads. In each row, a thread holds
/// two adjacent columns of every eight.
template <int columns>
struct flash_softmax {
  float most[2];   ///< maximum of the logits so far, not scaled
  float total[2];  ///< sum of this thread's weights, relative to the maximum
  float scale;     ///< of logits, to base 2

  __device__ explicit flash_softmax(float scale_to_base_2) : scale(scale_to_base_2) {
    most[0] = most[1] = nothing();
    total[0] = total[1] = 0;
  }

  [[nodiscard]] __device__ static float nothing() { return __int_as_float(0xff800000); }

  /// Masks the columns from `sees[row]` on.
  __device__ static void hide(float (&logits)[columns / 2], const int (&sees)[2]) {
    const int column = static_cast<int>(threadIdx.x) % 4 * 2;
#pragma unroll
    for (int j = 0; j < columns / 8; ++j) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (8 * j + i % 2 >= sees[i / 2] - column) logits[4 * j + i] = nothing();
      }
    }
  }

  /// Replaces logits by weights relative to the maximum so far. The caller must multiply earlier
  /// sums by `kept`, which makes them relative to this maximum.
  __device__ void weigh(float (&logits)[columns / 2], float (&kept)[2]) {
    float reference[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      // Two chains: in a single chain each maximum would wait for the previous one.
      float high = most[r];
      float other = nothing();
#pragma unroll
      for (int j = 0; j < columns / 8; ++j) {
        high = fmaxf(high, logits[4 * j + 2 * r]);
        other = fmaxf(other, logits[4 * j + 2 * r + 1]);
      }
      high = fmaxf(high, other);
      high = fmaxf(high, __shfl_xor_sync(everybody, high, 1));
      high = fmaxf(high, __shfl_xor_sync(everybody, high, 2));
      reference[r] = high == nothing() ? 0 : high * scale;
      kept[r] = power_of_2(most[r] * scale - reference[r]);
      most[r] = high;
      total[r] *= kept[r];
    }
#pragma unroll
    for (int j = 0; j < columns / 8; ++j) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        float& logit = logits[4 * j + i];
        logit = power_of_2(logit * scale - reference[i / 2]);
        total[i / 2] += logit;
      }
    }
  }

  /// Called after the last logits. Reduces `total`: every thread of a row gets the row's sum.
  __device__ void finish() {
#pragma unroll
    for (float& sum : total) {
      sum += __shfl_xor_sync(everybody, sum, 1);
      sum += __shfl_xor_sync(everybody, sum, 2);
    }
  }

 private:
  static constexpr unsigned everybody = 0xffffffffU;
};

}  // namespace untax::gpu

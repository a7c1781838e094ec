#pragma once

namespace untax::gpu {

// Parts of attention are merged by the logarithms of their sums of exponentials: each is weighted
// by the exponential of its own, less the largest one, and the sum divided by that of the weights.

/// The logarithm of nothing: minus infinity.
[[nodiscard]] __device__ inline float log_of_nothing() { return __int_as_float(0xff800000); }
/// What is taken from all logarithms, of which `high` is the largest: where all are of nothing, a
/// difference would be no number.
[[nodiscard]] __device__ inline float reference_of(float high) {
  return high == log_of_nothing() ? 0 : high;
}
/// What a sum of weighted elements is multiplied by; zeros where there is nothing.
[[nodiscard]] __device__ inline float share_of(float total) { return total > 0 ? 1 / total : 0; }

}  // namespace untax::gpu

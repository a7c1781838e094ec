#pragma once

namespace untax::gpu {

// Partial results are merged by log-sum-exp: each is weighted by the exponential of its own
// log-sum-exp minus the largest one. The weighted sum is divided by the sum of the weights.

/// The logarithm of an empty sum: minus infinity.
[[nodiscard]] __device__ inline float log_of_nothing() { return __int_as_float(0xff800000); }
/// The reference that is subtracted from all logarithms; `high` is the largest of them. It is 0
/// where all of them are minus infinity, since their difference would be NaN.
[[nodiscard]] __device__ inline float reference_of(float high) {
  return high == log_of_nothing() ? 0 : high;
}
/// The factor that normalises a sum of weighted elements; 0 where there is nothing to sum.
[[nodiscard]] __device__ inline float share_of(float total) { return total > 0 ? 1 / total : 0; }

}  // namespace untax::gpu

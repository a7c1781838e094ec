#pragma once

#include <cstdint>

#include "engines/gpu/sparse/kernel.hpp"

namespace untax::sparse {

constexpr unsigned whole_warp = 0xffffffffU;

/// Stores y of a row whose terms add up to `sum`, rounded as on the host.
template <class Value>
__device__ void put(const spmv_vectors<Value>& v, std::int64_t row, Value sum) {
  Value& to = v.y[row];
  to = v.beta == Value(0) ? v.alpha * sum : fma(v.beta, to, v.alpha * sum);
}

/// Streaming load, for data that a product reads once: it does not evict x from the caches.
template <class T>
__device__ T read_once(const T* from) {
  return __ldcs(from);
}

/// The sum of lane `lane` of `lanes`: every `lanes`-th term of the elements from `begin` to `end`.
template <class Value, class Offset>
__device__ Value sum_of_lane(const device_csr<Value, Offset>& m, const Value* x, std::int64_t begin,
                             std::int64_t end, int lane, int lanes) {
  constexpr int ahead = 4;  // elements whose loads are issued before the first one is used
  Value sum = 0;
  for (std::int64_t i = begin + lane; i < end; i += ahead * lanes) {
    std::int32_t columns[ahead];
    Value values[ahead];
    // The last iteration, often the only one, also issues all of its loads at once.
#pragma unroll
    for (int k = 0; k < ahead; ++k) {
      const bool there = i + k * lanes < end;
      columns[k] = there ? read_once(m.columns + i + k * lanes) : -1;
      values[k] = there ? read_once(m.values + i + k * lanes) : Value(0);
    }
    Value factors[ahead];
#pragma unroll
    for (int k = 0; k < ahead; ++k) factors[k] = columns[k] >= 0 ? __ldg(x + columns[k]) : Value(0);
#pragma unroll
    for (int k = 0; k < ahead; ++k) {
      if (columns[k] >= 0) sum = fma(values[k], factors[k], sum);
    }
  }
  return sum;
}

/// Tree sum over groups of `lanes` lanes, a power of two up to 32. The first lane of a group gets
/// the sum. All lanes of the warp must call this.
template <class Value>
__device__ Value sum_of_lanes(Value sum, int lanes) {
#pragma unroll
  for (int half = lanes / 2; half > 0; half /= 2)
    sum += __shfl_down_sync(whole_warp, sum, half, lanes);
  return sum;
}

/// As `sum_of_lanes`, over a block of `threads` threads, 32 to 1024, which must all call this.
/// Thread 0 gets the sum. `warps`: shared memory, one value per warp, reusable after the next
/// barrier.
template <int threads, class Value>
__device__ Value sum_of_block(Value sum, Value* warps) {
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  sum = sum_of_lanes(sum, 32);
  if (lane == 0) warps[warp] = sum;
  __syncthreads();
  if (warp > 0) return 0;
  return sum_of_lanes(lane < threads / 32 ? warps[lane] : Value(0), threads / 32);
}

}  // namespace untax::sparse

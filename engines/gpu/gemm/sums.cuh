#pragma once

namespace untax::gpu {

/// Sums go from thread to thread in fours, whichever way they take.
__device__ inline void add_four(float* sums, const float4& more) {
  sums[0] += more.x;
  sums[1] += more.y;
  sums[2] += more.z;
  sums[3] += more.w;
}

}  // namespace untax::gpu

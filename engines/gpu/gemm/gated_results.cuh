#pragma once

#include <cstdint>

#include "engines/gpu/gemm/block.cuh"
#include "engines/gpu/matrix/activation_function.cuh"
#include "engines/gpu/matrix/pairs.cuh"

namespace untax::gpu {

/// Results whose columns are gate and up: MMA warpgroups multiply function(gate) by up and store
/// the products with ordinary stores, since so few bytes need no TMA. Other results go to the
/// epilogue.
struct gated_results {
  static constexpr bool takes = false;
  static constexpr bool adds = false;
  static constexpr bool gates = true;

  const gated_output& gated;

  [[nodiscard]] __device__ bool multiply() const { return gated.out != nullptr; }

  /// Stores the columns of a share of a tile. `m`: the warp's first row of the M operand, `n`: the
  /// first row of A; `sums`: of a thread, in the layout of wgmma.
  template <class T, int columns>
  __device__ void store(int m, int n, const float* sums) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int column = m / 2 + lane / 4;
    if (column >= gated.columns) return;
    float gate_bias = 0;
    float up_bias = 0;
    if (gated.bias != nullptr) {
      const T* const bias = static_cast<const T*>(gated.bias) + m + lane / 4;
      gate_bias = static_cast<float>(bias[0]);
      up_bias = static_cast<float>(bias[8]);
    }
    T* const out = static_cast<T*>(gated.out) + column;
#pragma unroll
    for (int i = 0; i < columns / 4; ++i) {
      const int row = n + i / 2 * 8 + lane % 4 * 2 + i % 2;
      const float* const s = sums + i / 2 * 4 + i % 2;
      const float result = function_of(gated.function, s[0] + gate_bias) * (s[2] + up_bias);
      if (row < gated.rows)
        out[static_cast<std::int64_t>(row) * gated.columns] = static_cast<T>(result);
    }
  }
};

}  // namespace untax::gpu

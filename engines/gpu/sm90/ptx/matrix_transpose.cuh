#pragma once

#include <cstdint>

namespace untax::gpu {

/// Transposes a matrix of 8 x 8 elements of 2 bytes: lane 4 * r + q holds elements 2 * q and 2 * q
/// + 1 of row r, before and after. All lanes of a warp must call this.
[[nodiscard]] __device__ inline std::uint32_t transposed(std::uint32_t two) {
  std::uint32_t result = 0;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(result) : "r"(two));
  return result;
}

}  // namespace untax::gpu

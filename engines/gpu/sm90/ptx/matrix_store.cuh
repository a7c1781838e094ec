#pragma once

#include <cstdint>

namespace untax::gpu {

/// Stores four 8 x 8 matrices of 2-byte elements from the registers of a warp to shared memory.
/// Lane 8 * q + r gives the address of row r of matrix q (16 bytes). With `transposed`, that is a
/// column of the matrix.
template <bool transposed>
__device__ void store_matrices(void* row, std::uint32_t a, std::uint32_t b, std::uint32_t c,
                               std::uint32_t d) {
  const auto at = static_cast<std::uint32_t>(__cvta_generic_to_shared(row));
  if constexpr (transposed) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};"
                 :
                 : "r"(at), "r"(a), "r"(b), "r"(c), "r"(d)
                 : "memory");
  } else {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                 :
                 : "r"(at), "r"(a), "r"(b), "r"(c), "r"(d)
                 : "memory");
  }
}

/// Stores two matrices; lanes 0 to 15 give the addresses.
template <bool transposed>
__device__ void store_matrices(void* row, std::uint32_t a, std::uint32_t b) {
  const auto at = static_cast<std::uint32_t>(__cvta_generic_to_shared(row));
  if constexpr (transposed) {
    asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};"
                 :
                 : "r"(at), "r"(a), "r"(b)
                 : "memory");
  } else {
    asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};"
                 :
                 : "r"(at), "r"(a), "r"(b)
                 : "memory");
  }
}

}  // namespace untax::gpu

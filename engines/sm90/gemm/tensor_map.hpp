#pragma once

#include <cuda.h>

#include <cstdint>

#include <untax/core/types.hpp>

#include "engines/sm90/gemm/config.hpp"

namespace untax::sm90 {

/// A matrix in memory: element (0, 0), and how many elements lie between two rows.
struct matrix_at {
  const void* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t stride = 0;
};

/// A matrix for the copy engine: boxes of `box_rows` rows and 64 elements, in shared memory with
/// the swizzle of 128 bytes. Rows begin at multiples of 16 bytes. L2 reads `together` bytes from
/// memory at once, 128 or 256. Throws `invalid_argument` or `unsupported`.
[[nodiscard]] CUtensorMap tensor_map_of(const matrix_at& matrix, dtype type, int box_rows,
                                        int together = 256);
/// The same of C, in the boxes in which tiles are stored.
[[nodiscard]] CUtensorMap result_map_of(const matrix_at& matrix, dtype type, const tile_config& c);

/// Matrices of one shape, of which one begins `between` elements behind the other, in boxes that
/// only move: rows lie one behind the other in shared memory, without a swizzle. A box has at most
/// 256 rows and 256 columns; its rows are multiples of 16 bytes. Throws like the others.
[[nodiscard]] CUtensorMap moved_map_of(const matrix_at& first, int layers, std::int64_t between,
                                       dtype type, int box_rows, int box_columns);

}  // namespace untax::sm90

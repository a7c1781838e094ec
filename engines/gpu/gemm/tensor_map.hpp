#pragma once

#include <cuda.h>

#include <untax/core/types.hpp>

#include "engines/gpu/gemm/config.hpp"
#include "engines/gpu/gemm/io.hpp"
#include "engines/gpu/gemm/matrix_at.hpp"
#include "engines/gpu/gemm/plan.hpp"

namespace untax::gpu {

/// How a TMA tile lies in shared memory, in rows without gaps, and how many bytes L2 reads from
/// memory at once for it: 128 or 256.
struct tma_tile_form {
  int rows;
  int columns = block_k;
  int together = 256;
  CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_128B;
};

/// A matrix for TMA. Its rows begin at multiples of 16 bytes. Throws `invalid_argument` or
/// `unsupported`.
[[nodiscard]] CUtensorMap tensor_map_of(const matrix_at& matrix, dtype type,
                                        const tma_tile_form& form);

/// Of matrices of one shape, in TMA tiles that only move: rows lie one behind the other in shared
/// memory, without a swizzle. A TMA tile has at most 256 rows and 256 columns; its rows are
/// multiples of 16 bytes. Throws like the others.
[[nodiscard]] CUtensorMap moved_map_of(const tma_tiles_at& tma_tiles, dtype type);

/// Of sequences of rows, one behind the other in a matrix, for TMA tiles of `tma_tile_rows` rows
/// and 64 elements that end with their sequence: what lies behind it becomes 0. The coordinates are
/// the column, rows of the TMA tile that lie behind the end of the sequence (0 where it ends
/// later), and `tma_tile_rows` plus the first row, less those.
[[nodiscard]] CUtensorMap sequences_map_of(const matrix_at& matrix, dtype type, int tma_tile_rows);

/// The maps of the matrices of a planned GEMM, in the TMA tiles in which its kernel takes them.
struct gemm_maps {
  const gemm_plan& plan;
  dtype type = dtype::bf16;

  /// A and B, whole tiles and what is left at their ends.
  void describe_operands(gemm_matrices& of, const matrix_at& in_a, const matrix_at& in_b) const;
  [[nodiscard]] CUtensorMap a(const matrix_at& matrix) const {
    return tensor_map_of(matrix, type, {a_tma_tile_rows(plan), block_k, read_together(plan)});
  }
  [[nodiscard]] CUtensorMap b(const matrix_at& matrix) const {
    return tensor_map_of(matrix, type, {b_tma_tile_rows(plan), block_k, read_together(plan)});
  }
  [[nodiscard]] CUtensorMap c(const matrix_at& matrix) const {
    return tensor_map_of(matrix, type,
                         {c_tma_tile_rows(plan.config), c_tma_tile_columns(plan.config)});
  }
};

}  // namespace untax::gpu

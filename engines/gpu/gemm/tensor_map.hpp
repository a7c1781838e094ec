#pragma once

#include <cuda.h>

#include <untax/core/types.hpp>

#include "engines/gpu/copy/matrix_at.hpp"
#include "engines/gpu/gemm/config.hpp"
#include "engines/gpu/gemm/io.hpp"
#include "engines/gpu/gemm/plan.hpp"

namespace untax::gpu {

/// The form of a TMA tile in shared memory, and how many bytes L2 reads from memory at once for it:
/// 128 or 256.
struct tma_tile_form {
  int rows;
  int columns = block_k;
  int together = 256;
  CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_128B;
};

/// The TMA descriptor of a matrix. Its rows begin at multiples of 16 bytes. Throws
/// `invalid_argument` or `unsupported`.
[[nodiscard]] CUtensorMap tensor_map_of(const matrix_at& matrix, dtype type,
                                        const tma_tile_form& form);

/// The TMA descriptor of matrices of one shape, for TMA tiles that are only copied: their rows
/// follow each other in shared memory, without a swizzle. A TMA tile has at most 256 rows and 256
/// columns; its rows are multiples of 16 bytes. Throws like `tensor_map_of`.
[[nodiscard]] CUtensorMap moved_map_of(const tma_tiles_at& tma_tiles, dtype type);

/// The TMA descriptor of a matrix as panels of 64 columns, for boxes of `rows` rows of `panels`
/// panels, which follow each other in shared memory. The coordinates: 0, the first row, and the
/// first panel. Panels beyond the matrix become 0. Throws like `tensor_map_of`.
[[nodiscard]] CUtensorMap panel_map_of(const matrix_at& matrix, dtype type, int rows, int panels);

/// The TMA descriptor of sequences of rows, one after the other in a matrix, for TMA tiles of
/// `tma_tile_rows` rows and 64 elements that end with their sequence: what follows becomes 0. The
/// coordinates: the column; rows of the TMA tile behind the end of the sequence (0 if it ends
/// later); and `tma_tile_rows` plus the first row, less the second coordinate.
[[nodiscard]] CUtensorMap sequences_map_of(const matrix_at& matrix, dtype type, int tma_tile_rows);

/// The TMA descriptors of a planned GEMM's matrices, for the TMA tiles of its kernel.
struct gemm_maps {
  const gemm_plan& plan;
  dtype type = dtype::bf16;

  /// Describes A and B: whole tiles, and incomplete tiles at their ends.
  void describe_operands(gemm_matrices& of, const matrix_at& in_a, const matrix_at& in_b) const;
  /// Describes the incomplete tile at the end of the rank's own shard of a gathered A.
  void describe_own_shard(gemm_matrices& of, const matrix_at& own) const;
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

 private:
  [[nodiscard]] operand_tail tail(const matrix_at& matrix, const CUtensorMap& whole,
                                  const operand_end& end) const;
};

}  // namespace untax::gpu

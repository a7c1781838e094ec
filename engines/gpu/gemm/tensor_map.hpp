#pragma once

#include <cuda.h>

#include <untax/core/types.hpp>

#include "engines/gpu/gemm/config.hpp"
#include "engines/gpu/gemm/matrix_at.hpp"

namespace untax::gpu {

/// A matrix for TMA: TMA tiles of `tma_tile_rows` rows and 64 elements, in shared memory with
/// the swizzle of 128 bytes. Rows begin at multiples of 16 bytes. L2 reads `together` bytes from
/// memory at once, 128 or 256. Throws `invalid_argument` or `unsupported`.
[[nodiscard]] CUtensorMap tensor_map_of(const matrix_at& matrix, dtype type, int tma_tile_rows,
                                        int together = 256);
/// The same of C, in the TMA tiles in which tiles are stored.
[[nodiscard]] CUtensorMap result_map_of(const matrix_at& matrix, dtype type, const tile_config& c);

/// Of matrices of one shape, in TMA tiles that only move: rows lie one behind the other in shared
/// memory, without a swizzle. A TMA tile has at most 256 rows and 256 columns; its rows are
/// multiples of 16 bytes. Throws like the others.
[[nodiscard]] CUtensorMap moved_map_of(const tma_tiles_at& tma_tiles, dtype type);

}  // namespace untax::gpu

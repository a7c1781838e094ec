#pragma once

#include <vector>

#include <untax/tile/shard.hpp>

#include "engines/gpu/comm/transfer_list.hpp"
#include "engines/gpu/copy/matrix_at.hpp"
#include "ops/gemm_all_scatter/device_plan.hpp"
#include "ops/gemm_all_scatter/protocol.hpp"

namespace untax {

/// The matrices that TMA reads and writes in a scatter, as tensor maps describe them.
struct scatter_maps {
  /// The matrices of a kernel that multiplies some rows of A.
  struct row_split {
    gpu::matrix_at a;
    gpu::matrix_at c;
  };
  std::vector<row_split> row_splits;
  gpu::matrix_at b;
  std::vector<gpu::matrix_at> copies;  ///< C at peers that get tiles, by hop from 1 on
  /// By hop, this rank's first: C as senders read and write flagged tiles.
  std::vector<gpu::tma_tiles_at> tma_tiles;
};

[[nodiscard]] scatter_maps maps_of(const gemm_all_scatter_problem& problem,
                                   const scatter_plan& plan, const gemm_all_scatter_protocol& how,
                                   const gemm_operands& operands);

/// The TMA tiles in which senders send a tile: as wide as the tile, one below the other. They end
/// where the tile ends, since the rows below may not be ready.
[[nodiscard]] gpu::tma_tile_size tma_tile_of(const gemm_all_scatter_protocol& how);

/// The transfer lists of senders of flagged tiles: rectangles of the rank's own columns of C, as in
/// `how`.
[[nodiscard]] comm::transfer_lists lists_of(const gemm_all_scatter_protocol& how);

}  // namespace untax

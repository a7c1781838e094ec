#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <untax/tile/shard.hpp>

#include "engines/gpu/comm/transfer_list.hpp"
#include "engines/gpu/gemm/matrix_at.hpp"
#include "ops/gemm_all_scatter/device_plan.hpp"
#include "ops/gemm_all_scatter/protocol.hpp"

namespace untax {

/// What TMA reads and writes in a scatter: the matrices that tensor maps describe.
struct scatter_maps {
  /// Of a kernel that multiplies some rows of A.
  struct row_split {
    gpu::matrix_at a;
    gpu::matrix_at c;
  };
  std::vector<row_split> row_splits;
  gpu::matrix_at b;
  std::vector<gpu::matrix_at> copies;  ///< of C at peers, by hop from 1 on, that tiles go to
  /// By hop, the own one first: C as senders read and write flagged tiles.
  std::vector<gpu::tma_tiles_at> tma_tiles;
};

[[nodiscard]] scatter_maps maps_of(const gemm_all_scatter_problem& problem,
                                   const scatter_plan& plan, const gemm_all_scatter_protocol& how,
                                   const gemm_operands& operands);

/// The TMA tiles in which senders send a tile: as wide as it is, one below the other. They end
/// where their tile does, since what lies below may not be there yet.
[[nodiscard]] gpu::tma_tile_size tma_tile_of(const gemm_all_scatter_protocol& how);

/// What senders of flagged tiles walk: rectangles of the rank's own columns of C, as `how` has
/// them.
[[nodiscard]] comm::transfer_lists lists_of(const gemm_all_scatter_protocol& how);

}  // namespace untax

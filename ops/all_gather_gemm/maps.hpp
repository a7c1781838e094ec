#pragma once

#include <cstddef>
#include <vector>

#include <untax/symmetric/symmetric.hpp>

#include "engines/gpu/comm/transfer_list.hpp"
#include "engines/gpu/copy/matrix_at.hpp"
#include "engines/gpu/copy/moved_operands.hpp"
#include "ops/all_gather_gemm/device_plan.hpp"
#include "ops/all_gather_gemm/protocol.hpp"

namespace untax {

/// The matrices that TMA reads and writes in a gather, as tensor maps describe them.
struct gather_maps {
  gpu::matrix_at b;
  gpu::matrix_at c;
  std::vector<gpu::matrix_at> a;       ///< by segment: the rank's own shard, or the inbox
  int own = -1;                        ///< the segment that is the own shard; -1: none
  std::vector<gpu::matrix_at> b_or_c;  ///< by segment: B if segments are k-blocks, C if they are
                                       ///< rows
  gpu::tma_tiles_at shard_tma_tiles;   ///< the rank's own shard; none if it is empty
  /// By rank: the place of this rank's shard in the inbox there, a layer for each set of rooms.
  std::vector<gpu::tma_tiles_at> inbox_tma_tiles;
};

[[nodiscard]] gather_maps maps_of(const all_gather_gemm_problem& problem, const gather_plan& plan,
                                  const all_gather_gemm_protocol& how,
                                  const gemm_operands& operands, const symmetric<std::byte>& inbox);

/// Bytes of each rank's symmetric memory: of the inbox and the rows behind it that tiles read, a
/// multiple of 512, and of the outbox, which follows it.
struct gather_bytes {
  std::size_t inbox = 0;
  std::size_t outbox = 0;
};
[[nodiscard]] gather_bytes bytes_of(const gather_plan& plan, const all_gather_gemm_protocol& how);
/// Sets the places of inbox, outbox and shard, and the distances between their rows.
void describe_moved(gpu::moved_operands& moved, const gather_plan& plan,
                    const all_gather_gemm_protocol& how);

/// The transfer lists of senders, for the run with the most rows. An entry is a chunk of the rank's
/// own shard, which goes to all peers before the next chunk, or to one. There are no lists for
/// packets, whose places are computed, or for pulls and DMA engines, which take steps.
[[nodiscard]] comm::transfer_lists lists_of(all_gather_gemm_problem problem,
                                            const gather_plan& plan);

}  // namespace untax

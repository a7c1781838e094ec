#pragma once

#include "engines/gpu/comm/packed_list.hpp"
#include "ops/gemm_all_scatter/device_plan.hpp"
#include "ops/gemm_all_scatter/protocol.hpp"

namespace untax {

/// Whose steps the lists of a planned scatter are, and these steps: those of who moves tiles, or
/// whole shards; of DMA engines, by stream. Where CTAs store to peers there is nobody.
[[nodiscard]] comm::lowered_workers sender_workers(const scatter_plan& plan,
                                                   const gemm_all_scatter_protocol& how);
/// `how` has to outlive it.
[[nodiscard]] comm::step_source sender_steps(const scatter_plan& plan,
                                             const gemm_all_scatter_protocol& how);

/// The program of a planned scatter as lists: what each sender does.
[[nodiscard]] comm::transfer_lists lower_scatter(const scatter_plan& plan,
                                                 const gemm_all_scatter_protocol& how);
/// These as kernels walk them, with flagged tiles: rectangles of the rank's own columns of C.
[[nodiscard]] comm::packed_lists packed_tiles(const comm::transfer_lists& lists,
                                              const gemm_all_scatter_protocol& how);

}  // namespace untax

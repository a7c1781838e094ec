#pragma once

#include "engines/gpu/comm/packed_list.hpp"
#include "ops/all_gather_gemm/device_plan.hpp"
#include "ops/all_gather_gemm/protocol.hpp"

namespace untax {

/// Whose steps the lists of a planned gather are, and these steps.
[[nodiscard]] comm::lowered_workers sender_workers(const gather_plan& plan,
                                                   const all_gather_gemm_protocol& how);
/// `how` has to outlive it.
[[nodiscard]] comm::step_source sender_steps(const all_gather_gemm_protocol& how);

/// The program of a planned gather as lists: what each sender does.
[[nodiscard]] comm::transfer_lists lower_gather(const gather_plan& plan,
                                                const all_gather_gemm_protocol& how);

/// Whether senders of a plan walk its lists: packets find their places by arithmetic, and pulls and
/// DMA engines take steps.
[[nodiscard]] bool walks_lists(const gather_plan& plan, const all_gather_gemm_protocol& how);
/// The lists of senders as kernels walk them, whose chunks are rectangles of the rank's own shard:
/// to all peers before the next chunk, or to one.
[[nodiscard]] comm::packed_lists packed_chunks(const comm::transfer_lists& lists,
                                               const all_gather_gemm_protocol& how);

/// The plan of the same gather where a chunk is so many columns of a row, and so many senders
/// share them: where packets go, which each signal for themselves.
[[nodiscard]] gather_plan in_packets(const gather_plan& plan, int columns, int senders);
/// Threads that send packets.
[[nodiscard]] int packet_threads_of(const gather_plan& plan);

}  // namespace untax

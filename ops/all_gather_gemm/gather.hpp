#pragma once

#include "engines/gpu/gemm/sources/gathered.hpp"
#include "ops/all_gather_gemm/protocol.hpp"

namespace untax {

/// What the GEMM is given that gathers with the protocol of all_gather_gemm.
using gather_io = gpu::gemm_io<gathered<all_gather_gemm_protocol>, segmented_result,
                               shard_senders<all_gather_gemm_protocol>>;
/// The same where A comes in packets.
using packet_gather = gpu::gemm_io<gathered_packets<all_gather_gemm_protocol>, segmented_result,
                                   packet_senders<all_gather_gemm_protocol>>;
static_assert(sizeof(gather_io) == sizeof(packet_gather));  // one struct is passed to either

}  // namespace untax

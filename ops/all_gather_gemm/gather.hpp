#pragma once

#include "engines/gpu/gemm/sources/packets.hpp"
#include "ops/all_gather_gemm/protocol.hpp"

namespace untax {

/// What kernels are given that gather with the protocol of all_gather_gemm.
using gather_io = gathered<all_gather_gemm_protocol>;
using packet_gather = gathered_packets<all_gather_gemm_protocol>;

}  // namespace untax

#pragma once

#include "engines/gpu/gemm/sinks/all_copies.hpp"
#include "ops/gemm_all_scatter/protocol.hpp"

namespace untax {

/// What the GEMM is given that scatters with the protocol of gemm_all_scatter.
using scatter_io = gpu::gemm_io<gpu::local_source, all_copies<gemm_all_scatter_protocol>,
                                tile_senders<gemm_all_scatter_protocol>>;

}  // namespace untax

#pragma once

#include "engines/gpu/gemm/sinks/all_copies.hpp"
#include "ops/gemm_all_scatter/protocol.hpp"

namespace untax {

/// What kernels are given that scatter with the protocol of gemm_all_scatter.
using scatter_io = all_copies<gemm_all_scatter_protocol>;

}  // namespace untax

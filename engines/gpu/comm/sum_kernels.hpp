#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "engines/gpu/comm/sinks/owner_sums.hpp"

namespace untax::gpu {

/// Launches a grid that only adds what ranks send, with `blocks` blocks of 12 warps.
/// `io.adding_warps` is the number of warps in all blocks. `epochs`: one word per block.
void add_in_own_grid(const adding_io& io, std::uint64_t* epochs, int blocks, cudaStream_t stream);

}  // namespace untax::gpu

#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "engines/gpu/gemm/sinks/owner_sums.hpp"

namespace untax::gpu {

/// A grid that only adds what ranks send, `blocks` blocks of 12 warps each: `io.adding_warps` are
/// those of all. `epochs`: a word of each block.
void add_in_own_grid(const adding_io& io, std::uint64_t* epochs, int blocks, cudaStream_t stream);

}  // namespace untax::gpu

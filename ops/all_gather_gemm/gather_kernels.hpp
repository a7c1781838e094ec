#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "ops/all_gather_gemm/gather.hpp"
#include "ops/all_gather_gemm/gather_at_once.hpp"

namespace untax {

/// The movers of the protocol as a kernel of their own, of an even number of blocks.
void move_gathered(const gather_traffic& traffic, std::uint64_t* epochs, int blocks,
                   cudaStream_t stream);

/// The same, where nothing is beside it, and what others send here is awaited, too: when the kernel
/// has ended, all of A is there. A block for each mover, and a word of `epochs`. With `early` it
/// takes places as the kernel before it leaves them.
void gather_all(const gather_at_once& what, std::uint64_t* epochs, bool early, cudaStream_t stream);

/// And where pieces are boxes, by an even number of blocks.
void gather_all_in_boxes(const gather_traffic& traffic, const receiving_grid& incoming,
                         std::uint64_t* epochs, int blocks, bool early, cudaStream_t stream);

}  // namespace untax

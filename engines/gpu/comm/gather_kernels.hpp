#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "engines/gpu/comm/bulk_gather.hpp"
#include "engines/gpu/comm/shard_senders.hpp"

namespace untax {

/// The senders of the protocol as a kernel of their own, of an even number of blocks.
template <class Protocol>
void move_gathered(const shard_io<Protocol>& io, std::uint64_t* epochs, int blocks,
                   cudaStream_t stream);

/// The same, where nothing is beside it, and what others send here is awaited, too: when the kernel
/// has ended, all of A is there. A block for each sender, and a word of `epochs`. With `early` it
/// takes places as the kernel before it leaves them.
void gather_all(const bulk_gather& what, std::uint64_t* epochs, bool early, cudaStream_t stream);

/// And where chunks are TMA tiles, by an even number of blocks.
template <class Protocol>
void gather_all_by_tma(const shard_io<Protocol>& io, const receiving_grid& incoming,
                       std::uint64_t* epochs, int blocks, bool early, cudaStream_t stream);

}  // namespace untax

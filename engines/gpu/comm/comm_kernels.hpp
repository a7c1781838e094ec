#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "engines/gpu/comm/gemm_senders.hpp"
#include "engines/gpu/comm/moved_shard.hpp"

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

/// The senders of the protocol as a kernel of their own beside the GEMM, a block each, an even
/// number of them: they open C, send tiles as these are flagged, and close. `epochs`: a word of
/// each block.
template <class Protocol>
void move_scattered(const tile_io<Protocol>& io, std::uint64_t* epochs, int blocks,
                    cudaStream_t stream);

/// The same behind the GEMM, where tiles are kept until all of them are there: all at once, by as
/// many blocks as there are senders. With `early` they take places as the GEMM leaves them.
template <class Protocol>
void scatter_all(const tile_io<Protocol>& io, std::uint64_t* epochs, bool early,
                 cudaStream_t stream);

/// Meetings of all ranks, as kernels: one ends when all have opened C, the other when everything
/// has landed. A word counts the epochs of each.
enum class scatter_meeting : bool { closes, opens };
template <class Protocol>
void meet_scattered(const tile_io<Protocol>& io, scatter_meeting what, std::uint64_t* epoch,
                    cudaStream_t stream);

}  // namespace untax

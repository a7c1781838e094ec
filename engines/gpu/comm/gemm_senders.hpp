#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdint>

#include "engines/gpu/channel/run_arguments.hpp"
#include "engines/gpu/comm/moved_shard.hpp"
#include "engines/gpu/comm/placement.hpp"
#include "engines/gpu/comm/transfer_list.hpp"
#include "engines/gpu/gemm/io.hpp"
#include "engines/gpu/gemm/matrix_at.hpp"

namespace untax {

/// Arguments of all kernels of a gather.
template <class Protocol>
struct gather_run : gpu::with_peers<Protocol> {
  sent_shard shard;
};

/// Senders of a rank's own shard to the inboxes of all ranks, in chunks. The placement of a pattern
/// says where they run: in communication CTAs, in warps beside the MMA warpgroups, or in a grid of
/// their own.
template <class Protocol>
struct shard_senders {
  using run = gather_run<Protocol>;
  struct arguments {
    gather_senders who = gather_senders::elsewhere;
    bool tma_tiles = false;    ///< what is pushed goes as TMA tiles, a chunk each
    comm::sender_lists lists;  ///< of those that push, but not in packets
    int rate_limit = 0;        ///< of epilogue warps that move: bytes a nanosecond, of all together
    CUtensorMap shard_tma_tiles;  ///< of the rank's own shard, one layer
    /// By rank: where this rank's shard lies in the inbox there, a layer for each set of rooms.
    CUtensorMap inbox_tma_tiles[gpu::most_ranks];
  };
  template <class Io>
  class view;
};

/// The same, in packets.
template <class Protocol>
struct packet_senders {
  using run = gather_run<Protocol>;
  using arguments = typename shard_senders<Protocol>::arguments;
  template <class Io>
  class view;
};

/// Arguments of a kernel that only sends a rank's shard.
template <class Protocol>
using shard_io = gpu::comm_io<shard_senders<Protocol>>;

/// Arguments of all kernels of a scatter.
template <class Protocol>
struct scatter_run : gpu::with_peers<Protocol> {
  scatter_way way = scatter_way::store_to_peers;
  /// This rank's columns of C, at itself and then in the order of hops; those of peers in TMA
  /// tiles in which they are sent.
  CUtensorMap c[gpu::most_ranks];
};

/// Senders of flagged tiles of C to all ranks: communication CTAs, or a grid of their own. Where
/// the epilogue stores to all copies itself, one warp opens C for the peers, and nothing else.
template <class Protocol>
struct tile_senders {
  using run = scatter_run<Protocol>;
  struct arguments {
    CUtensorMap own_tma_tiles;    ///< those at itself in the TMA tiles in which flagged tiles go
    comm::sender_lists sent;      ///< what these are: rectangles of the rank's own columns
    gpu::tma_tile_size tma_tile;  ///< a tile goes in as many, one below the other
  };
  template <class Io>
  class view;
};

/// Arguments of a kernel that only sends tiles of C.
template <class Protocol>
using tile_io = gpu::comm_io<tile_senders<Protocol>>;

// Kernels of senders alone.

/// The senders of the protocol as a kernel of their own, of an even number of blocks.
template <class Protocol>
void move_gathered(const shard_io<Protocol>& io, std::uint64_t* epochs, int blocks,
                   cudaStream_t stream);

/// The same with nothing beside it. It also waits for what peers send: when the kernel has ended,
/// all of A has arrived. A block for each sender, and a word of `epochs`. `early`: programmatic
/// dependent launch.
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

/// The same after the GEMM: all tiles at once, by as many blocks as there are senders. `early`:
/// programmatic dependent launch.
template <class Protocol>
void scatter_all(const tile_io<Protocol>& io, std::uint64_t* epochs, bool early,
                 cudaStream_t stream);

/// Barriers of all ranks, as kernels: one ends when all have opened C, the other when everything
/// has arrived. A word counts the epochs of each.
enum class scatter_meeting : bool { closes, opens };
template <class Protocol>
void meet_scattered(const tile_io<Protocol>& io, scatter_meeting what, std::uint64_t* epoch,
                    cudaStream_t stream);

}  // namespace untax

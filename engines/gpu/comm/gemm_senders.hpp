#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdint>

#include "engines/gpu/channel/run_arguments.hpp"
#include "engines/gpu/comm/moved_shard.hpp"
#include "engines/gpu/comm/placement.hpp"
#include "engines/gpu/comm/transfer_list.hpp"
#include "engines/gpu/copy/matrix_at.hpp"
#include "engines/gpu/gemm/io.hpp"

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
    bool tma_tiles = false;    ///< chunks are pushed as TMA tiles, one tile per chunk
    comm::sender_lists lists;  ///< of senders that push chunks, but not in packets
    int rate_limit = 0;        ///< total for all epilogue warps that send, in bytes per nanosecond
    CUtensorMap shard_tma_tiles;  ///< of the rank's own shard, one layer
    /// By rank: this rank's shard in the inbox of that rank, one layer for each set of rooms.
    CUtensorMap inbox_tma_tiles[gpu::most_ranks];
  };
  template <class Io>
  class view;
};

/// As `shard_senders`, with packets instead of chunks.
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
  /// This rank's columns of C: its own copy first, then peers' copies in the order of hops, as the
  /// TMA tiles in which they are sent.
  CUtensorMap c[gpu::most_ranks];
};

/// Senders of flagged tiles of C to all ranks: communication CTAs, or a grid of their own. Where
/// the epilogue itself stores to all copies, one warp opens C for the peers, and nothing is sent.
template <class Protocol>
struct tile_senders {
  using run = scatter_run<Protocol>;
  struct arguments {
    CUtensorMap own_tma_tiles;    ///< this rank's columns of its own C, as the TMA tiles to send
    comm::sender_lists sent;      ///< the tiles to send: rectangles of this rank's own columns
    gpu::tma_tile_size tma_tile;  ///< a tile is sent as several of these, one below the other
  };
  template <class Io>
  class view;
};

/// Arguments of a kernel that only sends tiles of C.
template <class Protocol>
using tile_io = gpu::comm_io<tile_senders<Protocol>>;

// Kernels that consist of senders only.

/// Launches the senders of the protocol as a kernel of their own, with an even number of blocks.
template <class Protocol>
void move_gathered(const shard_io<Protocol>& io, std::uint64_t* epochs, int blocks,
                   cudaStream_t stream);

/// Launches the senders with no GEMM beside them. The kernel also waits for the chunks of peers:
/// when it has ended, all of A has arrived. There are one block and one word of `epochs` per
/// sender. `early`: programmatic dependent launch.
void gather_all(const bulk_gather& what, std::uint64_t* epochs, bool early, cudaStream_t stream);

/// As above, for chunks that are TMA tiles, with an even number of blocks.
template <class Protocol>
void gather_all_by_tma(const shard_io<Protocol>& io, const receiving_grid& incoming,
                       std::uint64_t* epochs, int blocks, bool early, cudaStream_t stream);

/// Launches the senders of the protocol as a kernel of their own beside the GEMM, with one block
/// per sender, an even number. They open C, send tiles as these are flagged, and close. `epochs`:
/// one word per block.
template <class Protocol>
void move_scattered(const tile_io<Protocol>& io, std::uint64_t* epochs, int blocks,
                    cudaStream_t stream);

/// As above, after the GEMM: all tiles are complete, and there is one block per sender. `early`:
/// programmatic dependent launch.
template <class Protocol>
void scatter_all(const tile_io<Protocol>& io, std::uint64_t* epochs, bool early,
                 cudaStream_t stream);

/// Barriers of all ranks, as kernels: `opens` ends when all ranks have opened C, `closes` when all
/// tiles have arrived. A word in memory counts the epochs of each barrier.
enum class scatter_meeting : bool { closes, opens };
template <class Protocol>
void meet_scattered(const tile_io<Protocol>& io, scatter_meeting what, std::uint64_t* epoch,
                    cudaStream_t stream);

}  // namespace untax

#pragma once

#include <cuda.h>

#include "engines/gpu/channel/run_arguments.hpp"
#include "engines/gpu/comm/moved_shard.hpp"
#include "engines/gpu/comm/placement.hpp"
#include "engines/gpu/comm/transfer_list.hpp"
#include "engines/gpu/gemm/io.hpp"
#include "engines/gpu/gemm/matrix_at.hpp"

namespace untax {

/// What all kernels of a gather are given.
template <class Protocol>
struct gather_run : gpu::with_peers<Protocol> {
  sent_shard shard;
};

/// Senders of a rank's own shard to the inboxes of all ranks, in chunks. Where they are is the
/// placement of a pattern: communication CTAs, warps beside those that multiply, or a grid of their
/// own.
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

/// What a kernel is given that only sends a rank's shard.
template <class Protocol>
using shard_io = gpu::comm_io<shard_senders<Protocol>>;

/// What all kernels of a scatter are given.
template <class Protocol>
struct scatter_run : gpu::with_peers<Protocol> {
  scatter_way way = scatter_way::store_to_peers;
  /// This rank's columns of C, at itself and then in the order of hops; those of peers in TMA
  /// tiles in which they are sent.
  CUtensorMap c[gpu::most_ranks];
};

/// Senders of tiles of C to all ranks, as these are flagged: communication CTAs, or a grid of their
/// own. Where the epilogue stores to all copies itself, a warp only opens C for the others.
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

/// What a kernel is given that only sends tiles of C.
template <class Protocol>
using tile_io = gpu::comm_io<tile_senders<Protocol>>;

}  // namespace untax

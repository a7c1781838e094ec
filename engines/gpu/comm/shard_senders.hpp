#pragma once

#include <cuda.h>

#include "engines/gpu/channel/run_arguments.hpp"
#include "engines/gpu/comm/placement.hpp"
#include "engines/gpu/comm/sent_shard.hpp"
#include "engines/gpu/comm/transfer_list.hpp"
#include "engines/gpu/gemm/io.hpp"

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

}  // namespace untax

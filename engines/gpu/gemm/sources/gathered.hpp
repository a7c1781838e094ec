#pragma once

#include <cuda.h>

#include <cstdint>

#include "engines/gpu/comm/messages.hpp"
#include "engines/gpu/comm/moved_operands.hpp"
#include "engines/gpu/comm/placement.hpp"
#include "engines/gpu/comm/sending.hpp"
#include "engines/gpu/gemm/sources/segments.hpp"

namespace untax {

/// What the kernels of one run are given, apart from what a GEMM alone is: who moves what, where
/// parts of A lie, and what has to come before they are read.
///
/// To the protocol the blocks that multiply are one worker, and the senders are its senders. A is
/// read in segments, one for each source: rows of tiles with gather = rows, k-blocks with gather =
/// k; or, where all of A is collected in the inbox, in one.
template <class Protocol>
struct gathered {
  Protocol how;
  gpu::moved_operands moved;
  gather_senders who = gather_senders::elsewhere;
  bool tma_tiles = false;  ///< what is pushed goes as TMA tiles, a chunk each
  int senders = 1;
  int rate_limit = 0;    ///< of epilogue warps that move: bytes a nanosecond, of all together
  int comm_ctas = 0;     ///< blocks
  int multiplying = 0;   ///< blocks
  bool awaited = false;  ///< all of A has come before any of it is read
  bool polled = false;   ///< another warp than the one that loads looks for what comes of A
  std::uint64_t* done =
      nullptr;  ///< in this GPU's memory: blocks that have read all they read, ever
  /// With copy engines, in this GPU's memory: what they say when they have moved something. It is
  /// raised when the peers have read all that came before.
  std::uint64_t* next_use = nullptr;
  arrival_grid arrivals;
  sending_grid sending;

  gather_segments segments;
  CUtensorMap a[gpu::most_ranks];       ///< by segment: the rank's own shard, or the inbox
  CUtensorMap b_or_c[gpu::most_ranks];  ///< by segment: B where it is k-blocks, C where it is rows
  CUtensorMap shard_tma_tiles;          ///< of the rank's own shard, one layer
  /// By rank: where this rank's shard lies in the inbox there, a layer for each set of rooms.
  CUtensorMap inbox_tma_tiles[gpu::most_ranks];

  [[nodiscard]] UNTAX_HOST_DEVICE bool dry() const { return moved.run.launch < 0; }
  [[nodiscard]] UNTAX_HOST_DEVICE int comm_cta_count() const { return comm_ctas; }

  class block_io;
};

}  // namespace untax

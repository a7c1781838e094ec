#pragma once

#include <cuda.h>

#include <cstdint>

#include "engines/gpu/comm/messages.hpp"
#include "engines/gpu/comm/moved_operands.hpp"
#include "engines/gpu/comm/placement.hpp"
#include "engines/gpu/comm/sent_tiles.hpp"

namespace untax {

/// What the kernels of one run are given, apart from what a GEMM alone is: where the copies of C
/// lie, and who says what to whom about them.
///
/// To the protocol, the blocks that multiply are one worker, and where they send themselves also
/// the one publisher; elsewhere senders publish.
template <class Protocol>
struct all_copies {
  Protocol how;
  gpu::moved_operands moved;
  scatter_way way = scatter_way::store_to_peers;
  bool in_turn = false;  ///< a block sends a tile before it goes on to the next
  int senders = 0;
  int comm_ctas = 0;                    ///< blocks
  int multiplying = 0;                  ///< blocks
  int parts = 1;                        ///< of a tile, each stored by one thread
  std::uint64_t* done = nullptr;        ///< in this GPU's memory: blocks that have stored all, ever
  std::uint64_t* parts_done = nullptr;  ///< the same, by tile: its parts
  /// This rank's columns of C, at itself and then in the order of hops; those of peers in TMA
  /// tiles in which they are sent.
  CUtensorMap c[gpu::most_ranks];
  CUtensorMap
      own_tma_tiles;  ///< those at itself in the TMA tiles in which senders send flagged tiles
  sent_tiles sent;    ///< what these are

  [[nodiscard]] UNTAX_HOST_DEVICE bool dry() const { return moved.run.launch < 0; }
  [[nodiscard]] UNTAX_HOST_DEVICE int comm_cta_count() const { return comm_ctas; }

  class block_io;
};

}  // namespace untax

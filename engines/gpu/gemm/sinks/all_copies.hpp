#pragma once

#include <cstdint>

#include "engines/gpu/comm/gemm_senders.hpp"

namespace untax {

/// A sink: this rank's columns of C in the copies of all ranks. If the epilogue stores to all of
/// them, the CTAs that multiply are the one output of the protocol. If not, tiles are flagged for
/// senders, or the kernel that follows sends them.
template <class Protocol>
struct all_copies {
  struct arguments {
    bool in_turn = false;           ///< a block sends a tile before it goes on to the next
    int parts = 1;                  ///< of a tile, each stored by one thread
    std::uint64_t* done = nullptr;  ///< in this GPU's memory: blocks that have stored all, ever
    std::uint64_t* parts_done = nullptr;  ///< the same, by tile: its parts
  };
  template <class Io>
  class view;
};

/// What the GEMM is given that scatters with a protocol.
template <class Protocol>
using scatter_io = gpu::gemm_io<gpu::local_source, all_copies<Protocol>, tile_senders<Protocol>>;

}  // namespace untax

#pragma once

#include <cstdint>

#include "engines/gpu/comm/gemm_senders.hpp"

namespace untax {

/// A sink: stores this rank's columns of C in the copies of all ranks. If the epilogue stores to
/// all of them, the CTAs that multiply are the only output of the protocol. If not, tiles are
/// flagged for senders, or the next kernel sends them.
template <class Protocol>
struct all_copies {
  struct arguments {
    bool in_turn = false;           ///< a block sends a tile before it begins the next one
    int parts = 1;                  ///< parts per tile, each stored by one thread
    std::uint64_t* done = nullptr;  ///< in this GPU's memory: blocks that stored all, in all runs
    std::uint64_t* parts_done = nullptr;  ///< per tile: parts that were stored, in all runs
  };
  template <class Io>
  class view;
};

/// Arguments of the GEMM that scatters with a protocol.
template <class Protocol>
using scatter_io = gpu::gemm_io<gpu::local_source, all_copies<Protocol>, tile_senders<Protocol>>;

}  // namespace untax

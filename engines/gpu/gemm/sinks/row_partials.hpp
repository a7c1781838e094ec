#pragma once

#include <cstdint>

#include "engines/gpu/comm/gemm_senders.hpp"
#include "engines/gpu/gemm/sinks/owned_rows.hpp"

namespace untax {

/// A sink: the epilogue stores partial results of C in the slabs of the owners of their rows, see
/// `owned_rows`. Each block adds the own rows of its tiles over all ranks: if the peers' partials
/// have arrived when a tile has been multiplied, the epilogue stores the sums; the rest is added
/// after the block's last tile. Or the kernel that follows adds everything.
///
/// To the protocol the blocks that multiply have output 0, partial results, complete when all
/// blocks have stored what peers own; and, where they send sums to all ranks, output 1.
template <class Protocol>
struct row_partials {
  struct arguments {
    gpu::owned_rows owned;
    std::int64_t slab_bytes = 0;        ///< of a slab of the inbox
    bool adds = true;                   ///< blocks add; else the next kernel does
    bool passes_on = false;             ///< sums are stored in the results of all ranks
    std::uint64_t* sent_all = nullptr;  ///< in this GPU's memory: blocks that have sent all, ever
    std::uint64_t* summed = nullptr;    ///< likewise: blocks that have stored their sums
    CUtensorMap sums[gpu::most_ranks];  ///< where sums go, in the order of hops
  };
  template <class Io>
  class view;
};

/// What the GEMM is given whose partial results go to owners of rows.
template <class Protocol>
using row_sums_io = gpu::gemm_io<gpu::local_source, row_partials<Protocol>, tile_senders<Protocol>>;

}  // namespace untax

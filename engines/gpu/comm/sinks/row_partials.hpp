#pragma once

#include <cstdint>

#include "engines/gpu/comm/gemm_senders.hpp"
#include "engines/gpu/gemm/owned_rows.hpp"

namespace untax {

/// A sink: the epilogue stores partial results of C in the slabs of the owners of their rows, see
/// `owned_rows`. Each block adds the own rows of its tiles over all ranks: if the peers' partials
/// have arrived when a tile has been multiplied, the epilogue stores the sums; the rest is added
/// after the block's last tile. Or the next kernel adds everything.
///
/// To the protocol, the blocks that multiply have output 0, the partial results, which is complete
/// when all blocks have stored the rows of peers; and output 1, if they send sums to all ranks.
template <class Protocol>
struct row_partials {
  struct arguments {
    gpu::owned_rows owned;
    std::int64_t slab_bytes = 0;        ///< of a slab of the inbox
    bool adds = true;                   ///< blocks add; else the next kernel does
    bool passes_on = false;             ///< sums are stored to all ranks
    std::uint64_t* sent_all = nullptr;  ///< in this GPU's memory: blocks that sent all, in all runs
    std::uint64_t* summed = nullptr;    ///< likewise: blocks that have stored their sums
    CUtensorMap sums[gpu::most_ranks];  ///< the destinations of sums, in the order of hops
  };
  template <class Io>
  class view;
};

/// Arguments of the GEMM whose partial results go to the owners of their rows.
template <class Protocol>
using row_sums_io = gpu::gemm_io<gpu::local_source, row_partials<Protocol>, tile_senders<Protocol>>;

}  // namespace untax

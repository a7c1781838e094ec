#pragma once

#include <cstdint>

#include "engines/gpu/comm/gemm_senders.hpp"
#include "engines/gpu/gemm/sinks/owned_rows.hpp"

namespace untax {

/// Partial results of C, whose rows have owners: the epilogue stores them in slabs of these, see
/// `owned_rows`. Each block adds what all ranks have of the own rows of its tiles: where peers' are
/// there when a tile has been multiplied, the epilogue stores the sums; the rest is added when the
/// block has multiplied all. Or a kernel behind this one adds everything.
///
/// To the protocol the blocks that multiply are output 0, partial results, which are complete when
/// all blocks have stored what peers own; and, where they send sums to all ranks, output 1.
template <class Protocol>
struct row_partials {
  struct arguments {
    gpu::owned_rows owned;
    std::int64_t slab_bytes = 0;        ///< from what a rank leaves to what the next one does
    bool adds = true;                   ///< blocks add
    bool passes_on = false;             ///< and store sums in the results of all ranks
    std::uint64_t* sent_all = nullptr;  ///< in this GPU's memory: blocks that have sent all, ever
    std::uint64_t* summed = nullptr;    ///< the same: that have stored their sums
    CUtensorMap sums[gpu::most_ranks];  ///< where these go, in the order of hops
  };
  template <class Io>
  class view;
};

/// What the GEMM is given whose partial results go to owners of rows.
template <class Protocol>
using row_sums_io = gpu::gemm_io<gpu::local_source, row_partials<Protocol>, tile_senders<Protocol>>;

}  // namespace untax

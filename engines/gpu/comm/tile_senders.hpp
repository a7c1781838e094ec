#pragma once

#include <cuda.h>

#include "engines/gpu/channel/run_arguments.hpp"
#include "engines/gpu/comm/placement.hpp"
#include "engines/gpu/comm/transfer_list.hpp"
#include "engines/gpu/gemm/io.hpp"
#include "engines/gpu/gemm/matrix_at.hpp"

namespace untax {

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

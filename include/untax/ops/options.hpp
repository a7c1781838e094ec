#pragma once

#include <cstdint>
#include <memory>

#include <untax/core/pattern.hpp>
#include <untax/flow/fault_tap.hpp>

namespace untax {

/// How an operator is carried out. Zero means: let untax choose.
struct operator_options {
  pattern how = pattern::automatic;
  direction move = direction::push;
  /// Of the host only: on GPUs a run is launched eagerly, or captured in a graph, by its caller.
  launch_mode launch = launch_mode::graph;
  int workers = 0;  ///< computing workers of a rank; GPU: blocks that multiply, at most
  /// Moving workers of a rank, where the pattern has them. GPU: blocks, warps or streams.
  int senders = 0;
  /// Of gemm_all_reduce: 1 has everybody add everything, 2 has owners add their rows and pass the
  /// sum on.
  int phases = 0;
  /// The problem's m, or its tokens, is a capacity: a run takes any number of rows from 0 to it,
  /// the same at all ranks, each in its own best way; the matrices say how many. On GPUs of
  /// all_gather_gemm and gemm_all_scatter, not in bulk_library, and not with pull; else
  /// `unsupported` there.
  bool varying_rows = false;
  /// Of GEMM operators: a row of the result has the same bits for every m, place in the batch,
  /// pattern and way to cut it; what is added first depends on n, k and the number of ranks alone.
  /// Not in bulk_library on GPUs: `unsupported` there. Collectives and all_reduce_norm are so
  /// anyway.
  bool invariant = false;
  /// GPU: nothing that is ahead of a run in its stream, and may not have ended when the run is
  /// launched, writes the weights. Then, with few rows of A, the first of them are read while what
  /// is ahead ends, but in bulk_library and bulk_synchronous. The weights of a model that only
  /// infers are constant.
  bool constant_weights = false;
  /// The rest is of the host only: on GPUs tiles and pieces follow from the plan of the GEMM.
  std::int64_t tile_m = 0;   ///< rows of a tile
  std::int64_t tile_n = 0;   ///< columns of a tile
  std::int64_t panel_k = 0;  ///< columns of a piece, where A is gathered by k
  std::shared_ptr<fault_tap> faults =
      nullptr;  ///< for tests of what happens when ranks or signals fail
};

}  // namespace untax

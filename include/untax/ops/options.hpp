#pragma once

#include <cstdint>
#include <memory>

#include <untax/core/pattern.hpp>
#include <untax/flow/fault_tap.hpp>

namespace untax {

/// Options of an operator. A value of 0 lets untax choose. Options that change the plan have to be
/// the same at all ranks.
struct operator_options {
  pattern how = pattern::automatic;
  direction move = direction::push;
  /// Of the host only. On GPUs the caller launches a run eagerly, or captures it in a graph.
  launch_mode launch = launch_mode::graph;
  int workers = 0;  ///< computing workers of a rank; on GPUs the most blocks that multiply
  /// Senders of a rank, if the pattern has them. On GPUs these are blocks, warps or streams.
  int senders = 0;
  /// Of sums that every rank gets whole. 1: every rank adds everything. 2: owners add their
  /// rows and send the sum to all.
  int phases = 0;
  /// If true, the problem's m, or its tokens, is a capacity: a run takes any number of rows from 0
  /// to it, the same at all ranks, and has a plan for its rows. The matrices determine the number.
  /// On GPUs own kernels of all_gather_gemm and gemm_all_scatter do not support it with pull:
  /// `unsupported`.
  bool varying_rows = false;
  /// Of GEMM operators: a row of the result has the same bits for every m, place in the batch,
  /// pattern and way to split the work. The order of additions depends only on n, k and the number
  /// of ranks. bulk_library on GPUs does not have it: `unsupported`. Collectives and
  /// sums whose rows are normalised always have this property.
  bool invariant = false;
  /// Of GPUs: the caller promises that no work that is ahead of a run in its stream writes the
  /// weights and may still be running when the run is launched. Then, with few rows of A, a run
  /// loads the first weights while that work ends, except in bulk_library and bulk_synchronous. The
  /// weights of a model that only infers are constant.
  bool constant_weights = false;
  /// The next three are of the host only. On GPUs they follow from the plan of the GEMM.
  std::int64_t tile_m = 0;                      ///< rows of a tile
  std::int64_t tile_n = 0;                      ///< columns of a tile
  std::int64_t panel_k = 0;                     ///< columns of a chunk if A is gathered by k
  std::shared_ptr<fault_tap> faults = nullptr;  ///< for tests in which ranks or signals fail
};

}  // namespace untax

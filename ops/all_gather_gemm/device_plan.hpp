#pragma once

#include <string>
#include <vector>

#include <untax/ops/options.hpp>
#include <untax/ops/problems.hpp>

#include "engines/gpu/comm/placement.hpp"
#include "engines/gpu/gemm/plan.hpp"

namespace untax {

/// How an all_gather_gemm is carried out on a GPU.
struct gather_plan {
  protocol_plan protocol;  ///< as the protocol sees it: the blocks that multiply are one worker
  gpu::gemm_plan gemm;
  gather_senders who = gather_senders::elsewhere;
  int comm_ctas = 0;  ///< blocks that only move, in the kernel that multiplies
  int own_grid = 0;   ///< blocks of a kernel that only moves
  int streams = 0;    ///< of copy engines
  bool packets =
      false;           ///< what is sent carries its own signals, and goes straight to the consumer
  int rate_limit = 0;  ///< of epilogue warps that move: bytes a nanosecond, of all together
  bool tma_tiles = false;  ///< chunks are TMA tiles that TMA moves
  bool polls = false;      ///< a warp of each block that multiplies looks for what comes of A
  std::vector<int>
      sources;           ///< in the order in which their parts are read; one if all is collected
  int segment_rows = 0;  ///< rows of tiles of each source, with gather = rows; 0 if collected
  int segment_k_blocks = 0;  ///< k-blocks of each source, with gather = k, or all of them

  [[nodiscard]] std::string text() const;
  /// What all ranks have to have planned alike.
  [[nodiscard]] std::vector<std::string> agreed() const;
};

/// Plans for a GPU of `num_sms` multiprocessors, the one that the model of the GEMM likes best
/// first. `options.how` is a pattern of own kernels, not `automatic`.
[[nodiscard]] std::vector<gather_plan> gather_plans(const all_gather_gemm_problem& problem,
                                                    int world, int rank,
                                                    const operator_options& options, int num_sms);

}  // namespace untax

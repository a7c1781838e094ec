#pragma once

#include <string>
#include <vector>

#include <untax/ops/options.hpp>
#include <untax/ops/problems.hpp>

#include "engines/sm90/gemm/plan.hpp"

namespace untax {

/// Who of a rank's kernel are the senders of the protocol.
enum class gather_senders : std::uint8_t {
  elsewhere,       ///< nobody: another kernel, or the copy engines
  comm_ctas,       ///< blocks that do nothing else
  all_ctas_first,  ///< the blocks that multiply, before they do
  warps,           ///< a warp of each of the first blocks that multiply, while they do
  epilogue_warps,  ///< the warps of these that store, until they have something to store
};

/// How an all_gather_gemm is carried out on a GPU.
struct gather_plan {
  protocol_plan protocol;  ///< as the protocol sees it: the blocks that multiply are one worker
  sm90::gemm_plan gemm;
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

#pragma once

#include <memory>
#include <string>
#include <vector>

#include <untax/ops/options.hpp>
#include <untax/ops/problems.hpp>
#include <untax/world/world.hpp>

#include "engines/gpu/comm/placement.hpp"
#include "engines/gpu/gemm/plan.hpp"
#include "ops/common/device_operator.hpp"

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

/// TMA tiles of 32 KB, as wide as can be described.
inline constexpr std::int64_t tma_tile_rows = 64;
inline constexpr std::int64_t tma_tile_columns = 256;

/// Cuts A into the chunks in which it moves, where it is known who moves and what the GEMM is like:
/// sets all that a plan says of senders and chunks.
void cut_chunks(gather_plan& plan, const all_gather_gemm_problem& problem,
                const operator_options& options);

/// How long a gather takes if its GEMM takes `plan.gemm.cycles` alone, in cycles of 1755 MHz: with
/// what its clusters wait for and with what moves beside them. A rank sends `sent_bytes`, to all
/// peers together.
[[nodiscard]] double overlapped_cycles(const gather_plan& plan, double sent_bytes);

// The operator in a world of GPUs. The class has refused problems that no pattern can do: fp32, and
// n or k that are not multiples of 8. Collective; the rank's GPU is the current device. Throws
// `unsupported` for a pattern that there is not, or not here, with the reason, and `out_of_memory`.

/// Every pattern but bulk_library and `automatic`.
[[nodiscard]] std::unique_ptr<device_operator> all_gather_gemm_on_device(
    world& w, const all_gather_gemm_problem& problem, const operator_options& options);

/// bulk_library: NCCL, then cuBLASLt.
[[nodiscard]] std::unique_ptr<device_operator> all_gather_gemm_by_library(
    world& w, const all_gather_gemm_problem& problem);

}  // namespace untax

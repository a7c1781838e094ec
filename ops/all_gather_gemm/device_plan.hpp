#pragma once

#include <memory>
#include <string>
#include <vector>

#include <untax/ops/options.hpp>
#include <untax/ops/problems.hpp>
#include <untax/world/world.hpp>

#include "engines/gpu/comm/placement.hpp"
#include "engines/gpu/gemm/plan.hpp"
#include "engines/gpu/gemm/run_schedule.hpp"
#include "engines/gpu/rooms/room_pool.hpp"
#include "ops/common/device_operator.hpp"

namespace untax {

/// The plan of an all_gather_gemm on a GPU.
struct gather_plan {
  protocol_plan protocol;  ///< of the protocol, in which the blocks that multiply are one worker
  gpu::gemm_plan gemm;     ///< for the rows of the next runs
  gpu::row_capacity rows;  ///< the numbers of rows that runs may have
  gather_senders who = gather_senders::elsewhere;
  int comm_ctas = 0;  ///< communication CTAs: blocks of the GEMM kernel that do not multiply
  int own_grid = 0;   ///< blocks of a separate kernel of senders
  int streams = 0;    ///< streams of copy engines
  /// A is sent in packets, which carry their own signals and go straight to the consumer.
  bool packets = false;
  int rate_limit = 0;        ///< the most bytes a nanosecond that all epilogue warps together send
  bool tma_tiles = false;    ///< chunks are TMA tiles, sent by TMA
  bool polls = false;        ///< a warp of each block that multiplies is a flag poller
  std::vector<int> sources;  ///< in the order in which tiles read them; one if A is collected
  int segment_rows = 0;      ///< rows of each source, padded, with gather = rows; 0 if collected
  int segment_k_blocks = 0;  ///< k-blocks of each source, with gather = k, or all of them

  /// Sets the rows of A of the next runs: those of the problem, which has at most as many rows as
  /// the planned one. Other rows are only for `varying_rows`.
  void set_rows(const all_gather_gemm_problem& problem);
  [[nodiscard]] std::string text() const;
  /// The parts of the plan in which all ranks have to agree.
  [[nodiscard]] std::vector<std::string> agreed() const;
};

/// Plans for a GPU of `num_sms` multiprocessors, the one with the shortest predicted time first.
/// `options.how` is a pattern of own kernels, not `automatic`.
[[nodiscard]] std::vector<gather_plan> gather_plans(const all_gather_gemm_problem& problem,
                                                    int world, int rank,
                                                    const operator_options& options, int num_sms);

/// TMA tiles of 32 KB, as wide as a tensor map allows.
inline constexpr std::int64_t tma_tile_rows = 64;
inline constexpr std::int64_t tma_tile_columns = 256;

/// Splits A into the chunks that are sent, and sets the fields of a plan about senders and chunks.
/// The kind of senders and the GEMM have to be planned already.
void cut_chunks(gather_plan& plan, const all_gather_gemm_problem& problem,
                const operator_options& options);

/// The bytes that all blocks of a rank together send in a cycle of 1755 MHz, measured on 4 H200.
inline constexpr double link_bytes_per_cycle = 190;

/// The predicted time of a gather in cycles of 1755 MHz, if its GEMM alone takes
/// `plan.gemm.cycles`: with the waits of its clusters, and with the transfers beside them. A rank
/// sends `sent_bytes`, to all peers together.
[[nodiscard]] double overlapped_cycles(const gather_plan& plan, double sent_bytes);

// The operator in a world of GPUs. Its caller has refused problems that no pattern can do: fp32,
// and n or k that are not multiples of 8. Collective; the rank's GPU is the current device. Throws
// `unsupported`, with the reason, for a pattern that does not exist here, and `out_of_memory`.

/// For every pattern except bulk_library, `automatic`, and a bulk_synchronous that gathers first
/// (gathered_product.hpp). `rooms` are those of the operator's other plans; null: it has none.
[[nodiscard]] std::unique_ptr<device_operator> all_gather_gemm_on_device(
    world& w, const all_gather_gemm_problem& problem, const operator_options& options,
    gpu::room_pool* rooms);

/// For bulk_library: NCCL, then cuBLASLt. With `varying_rows` it runs any number of rows up to
/// `problem.m`.
[[nodiscard]] std::unique_ptr<device_operator> all_gather_gemm_by_library(
    world& w, const all_gather_gemm_problem& problem, bool varying_rows);

}  // namespace untax

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

/// The plan of a gemm_all_scatter on a GPU.
struct scatter_plan {
  protocol_plan protocol;  ///< of the protocol, in which the blocks that multiply are one worker
  gpu::gemm_plan gemm;     ///< for the rows of the next runs
  gpu::row_capacity rows;  ///< the numbers of rows that runs may have
  scatter_way way = scatter_way::store_to_peers;
  int comm_ctas = 0;  ///< communication CTAs: blocks of the GEMM kernel that only send
  int own_grid = 0;   ///< blocks of a separate kernel of senders
  int streams = 0;    ///< streams of copy engines
  int parts = 1;      ///< parts of a tile of the protocol, each stored by one thread
  /// The number of kernels that multiply, one after the other, `split_rows` rows of A each. With
  /// copy engines, the results of one are sent while the next ones multiply.
  int row_splits = 1;
  std::int64_t split_rows = 0;

  /// Sets the rows of the next runs, at most those of the planned problem. Other rows are only for
  /// `varying_rows`. Flagged tiles, whose senders have lists, and row splits stay as planned.
  void set_rows(std::int64_t of_run);
  [[nodiscard]] std::string text() const;
  /// The parts of the plan in which all ranks have to agree.
  [[nodiscard]] std::vector<std::string> agreed() const;
};

/// Plans for a GPU, or for the part of a GPU that a rank has. The first plan has the shortest
/// predicted time, of its GEMM or until its results have left. `options.how` is a pattern of own
/// kernels, not `automatic`.
[[nodiscard]] std::vector<scatter_plan> scatter_plans(const gemm_all_scatter_problem& problem,
                                                      int world, int rank,
                                                      const operator_options& options,
                                                      const gpu::gpu_model& gpu);

/// The predicted cycles until the last results have left, if a number of GEMMs of this plan run one
/// after the other, and copy engines send the results of each when it has ended. `world` ranks
/// store to each other.
[[nodiscard]] double drain_cycles_of_copies(const gpu::gemm_plan& plan, int row_splits, int world);

// The operator in a world of GPUs. Its caller has refused problems that no pattern can do: fp32,
// and n or k that are not multiples of 8. The C that `run` gets is this rank's; it lies in the
// symmetric heap, at the same offset at all ranks, `between` bytes from one rank to the next.
// Collective; the rank's GPU is the current device. Throws `unsupported`, with the reason, for a
// pattern that does not exist here, and `out_of_memory`.

/// For every pattern except bulk_library and `automatic`. `rooms` are those of the operator's other
/// plans; null: it has none.
[[nodiscard]] std::unique_ptr<device_operator> gemm_all_scatter_on_device(
    world& w, const gemm_all_scatter_problem& problem, const operator_options& options,
    std::int64_t between, gpu::room_pool* rooms);

/// For bulk_library: cuBLASLt, then NCCL. With `varying_rows` it runs any number of rows up to
/// `problem.m`.
[[nodiscard]] std::unique_ptr<device_operator> gemm_all_scatter_by_library(
    world& w, const gemm_all_scatter_problem& problem, bool varying_rows);

}  // namespace untax

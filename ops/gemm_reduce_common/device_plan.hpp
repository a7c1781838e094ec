#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <untax/core/types.hpp>
#include <untax/ops/options.hpp>
#include <untax/symmetric/symmetric.hpp>

#include "engines/gpu/comm/sinks/sum_fragments.hpp"
#include "engines/gpu/copy/matrix_at.hpp"
#include "engines/gpu/gemm/owned_rows.hpp"
#include "engines/gpu/gemm/plan.hpp"
#include "engines/gpu/gemm/run_schedule.hpp"
#include "ops/gemm_reduce_common/protocol.hpp"

namespace untax {

/// A GEMM that is summed over ranks on GPUs.
struct device_sum {
  std::string_view operator_name;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  dtype type = dtype::bf16;
  dtype partials = dtype::f32;
  reduce_target target = reduce_target::owner;
  int phases = 1;  ///< if the sum goes to all ranks

  /// Bytes of the result, if the sum goes to all ranks.
  [[nodiscard]] std::size_t result_bytes() const {
    return static_cast<std::size_t>(m * n) * size_of(type);
  }
};

/// A plan for a GPU, with own kernels.
struct sums_plan {
  gpu::gemm_plan gemm;     ///< for the rows of the next runs
  gpu::row_capacity rows;  ///< the numbers of rows that runs may have
  gpu::sum_fragments how;
  int comm_ctas = 0;    ///< communication CTAs: blocks of the GEMM kernel that only add
  int own_grid = 0;     ///< blocks of a kernel that only adds, at a rank without a part of k
  bool beside = false;  ///< all ranks have the kernel that only adds, beside the GEMM

  /// Sets the rows of the next runs: from 1 to the planned number. Other rows than the planned ones
  /// are only for `varying_rows`.
  void set_rows(std::int64_t of_run);
  /// The protocol between ranks, whose signals are words: all warps of a rank are one worker.
  [[nodiscard]] gemm_reduce_protocol exchange(const device_sum& sum) const;
  /// The number of warps of a rank that add.
  [[nodiscard]] int adding_warps(bool multiplies) const;
  [[nodiscard]] std::string text() const;
  /// The parts of the plan in which all ranks have to agree.
  [[nodiscard]] std::vector<std::string> agreed() const;
};

/// The patterns that `automatic` times beside bulk_library if no table has sums, the likeliest
/// first, from times between two GPUs, and of four ranks that share one. All blocks multiply. With
/// few rows all blocks also add, by words that carry their own signal; with many, rows are
/// scattered (see `row_sums_plan`); with still more, sums of a second phase leave beside the GEMM,
/// by words again. An owner of fewer rows than are stored at once also gets rows of other owners,
/// so owners of less than half as many rows get words.
[[nodiscard]] std::vector<pattern> usual_patterns_of(const device_sum& sum, int world);

/// Plans for a GPU, or for the part of a GPU that a rank has, sorted by the predicted time of the
/// GEMM alone. Throws `unsupported` for a pattern that does not exist on GPUs, and if no kernel can
/// compute the problem.
[[nodiscard]] std::vector<sums_plan> sums_plans(const device_sum& sum, int world, int rank,
                                                const operator_options& options,
                                                const gpu::gpu_model& gpu);

/// A plan of a sum on a GPU as a scatter of rows. Blocks that multiply store parts of tiles, 16-bit
/// partial results, into slabs in the memory of the owners of their rows. When the parts of all
/// ranks have landed, the owner's blocks add them: each adds the own rows of its tiles. If own rows
/// are not whole tiles that are multiplied last, another kernel adds afterwards.
struct row_sums_plan {
  gpu::gemm_plan gemm;     ///< for the rows of the next runs
  gpu::row_capacity rows;  ///< the numbers of rows that runs may have
  gpu::owned_rows owned;
  gpu::row_rotation rotation;  ///< own rows are multiplied last
  int rank = 0;
  int world = 1;
  bool everywhere = false;   ///< every rank adds all rows
  bool passes_on = false;    ///< owners store sums in the results of all ranks
  bool adds_behind = false;  ///< another kernel adds, of `adding` blocks
  int adding = 1;
  std::int64_t slab_rows = 0;  ///< for runs with any number of rows

  /// As in `sums_plan`.
  void set_rows(std::int64_t of_run);
  [[nodiscard]] std::string text() const;
  [[nodiscard]] std::vector<std::string> agreed() const;

  /// The protocol between ranks, to which the blocks that multiply are one worker.
  [[nodiscard]] gemm_reduce_protocol exchange(const device_sum& sum) const;
  /// The slab for this rank's parts at the owner `hop` hops away: rows from that owner's
  /// `owned.slab_begin` on. No rows if it owns none.
  [[nodiscard]] gpu::matrix_at slab_at(const symmetric<std::byte>& inbox, int hop,
                                       std::int64_t n) const;
  [[nodiscard]] std::int64_t slab_bytes(std::int64_t n) const { return slab_rows * n * 2; }
};

/// As `sums_plans`, for the pattern fused_warp_specialized. Also throws `unsupported` for fp32
/// partials: the epilogue stores elements of 16 bits.
[[nodiscard]] std::vector<row_sums_plan> row_sums_plans(const device_sum& sum, int world, int rank,
                                                        const operator_options& options,
                                                        const gpu::gpu_model& gpu);

}  // namespace untax

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <untax/core/types.hpp>
#include <untax/ops/options.hpp>

#include "engines/gpu/comm/sinks/sum_fragments.hpp"
#include "engines/gpu/gemm/plan.hpp"
#include "engines/gpu/gemm/run_schedule.hpp"
#include "ops/common/reduce_target.hpp"

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
  int phases = 1;  ///< where the sum goes to all ranks

  /// Bytes of the result, where the sum goes to all ranks.
  [[nodiscard]] std::size_t result_bytes() const {
    return static_cast<std::size_t>(m * n) * size_of(type);
  }
};

/// A plan for a GPU, with own kernels.
struct sums_plan {
  gpu::gemm_plan gemm;     ///< for the rows of the next runs
  gpu::row_capacity rows;  ///< how many rows runs may have
  gpu::sum_fragments how;
  int comm_ctas = 0;    ///< communication CTAs: blocks of the GEMM kernel that only add
  int own_grid = 0;     ///< blocks of a kernel that only adds, at a rank without a part of k
  bool beside = false;  ///< all ranks have that kernel, beside the GEMM

  /// Sets the rows of the next runs: 1 to the most. Other rows are only for `varying_rows`.
  void set_rows(std::int64_t of_run);
  /// The number of warps of a rank that add.
  [[nodiscard]] int adding_warps(bool multiplies) const;
  [[nodiscard]] std::string text() const;
  /// The parts of the plan in which all ranks have to agree.
  [[nodiscard]] std::vector<std::string> agreed() const;
};

/// The patterns that `automatic` times beside bulk_library where no table has sums, the likeliest
/// first, by times between two GPUs, and of four ranks that share one. All blocks multiply. With
/// few rows all add, too, by words that carry their own signal; with many, rows are scattered (see
/// `row_sums_plan`); with still more, sums of a second phase leave beside the GEMM, by words again.
/// An owner of fewer rows than are stored at once gets rows of others, too, so owners of less than
/// half as many get words.
[[nodiscard]] std::vector<pattern> usual_patterns_of(const device_sum& sum, int world);

/// Plans for a GPU, or the part of one that a rank has, sorted by the predicted time of the GEMM
/// alone. Throws `unsupported` for a pattern that does not exist here, and if no kernel can compute
/// the problem.
[[nodiscard]] std::vector<sums_plan> sums_plans(const device_sum& sum, int world, int rank,
                                                const operator_options& options,
                                                const gpu::gpu_model& gpu);

}  // namespace untax

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <untax/core/types.hpp>
#include <untax/ops/options.hpp>

#include "engines/gpu/gemm/plan.hpp"
#include "engines/gpu/gemm/sinks/sum_fragments.hpp"
#include "ops/common/reduce_target.hpp"

namespace untax {

/// What is summed over ranks on GPUs.
struct device_sum {
  std::string_view operator_name;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  dtype type = dtype::bf16;
  dtype partials = dtype::f32;
  reduce_target target = reduce_target::owner;
  int phases = 1;  ///< where the sum is wanted everywhere

  /// Of a sum that is wanted everywhere.
  [[nodiscard]] std::size_t result_bytes() const {
    return static_cast<std::size_t>(m * n) * size_of(type);
  }
};

/// How it is carried out on a GPU, by own kernels.
struct sums_plan {
  gpu::gemm_plan gemm;
  gpu::sum_fragments how;
  int comm_ctas = 0;    ///< blocks that only add, in the kernel that multiplies
  int own_grid = 0;     ///< blocks of a kernel that only adds, of a rank that has nothing of k
  bool beside = false;  ///< and of all ranks

  /// Runs from here on have so many rows, 1 to those that it was planned for. Of a plan for
  /// `varying_rows`.
  void set_rows(std::int64_t rows);
  /// Warps of a rank that add.
  [[nodiscard]] int adding_warps(bool multiplies) const;
  [[nodiscard]] std::string text() const;
  /// What all ranks have to have planned alike.
  [[nodiscard]] std::vector<std::string> agreed() const;
};

/// What `automatic` stands for between so many ranks. All blocks multiply; with few rows all add,
/// too, by words that are their own signal, and with many another kernel adds rows. Where sums are
/// passed on in a second phase, that goes on beside a GEMM of still more rows. Measured between two
/// H100. Between more, an owner of fewer rows than are stored at once would get those of others.
[[nodiscard]] pattern usual_pattern(const device_sum& sum, int world);

/// Plans for a GPU, or the part of one that a rank has, the one that the model of the GEMM alone
/// likes best first. Throws `unsupported` for a pattern that there is not, and where no kernel can
/// multiply.
[[nodiscard]] std::vector<sums_plan> sums_plans(const device_sum& sum, int world, int rank,
                                                const operator_options& options,
                                                const gpu::gpu_model& gpu);

}  // namespace untax

#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "ops/common/workload.hpp"
#include "src/taxes/cuda/benchmark_case.hpp"
#include "src/taxes/cuda/overlap_work.hpp"
#include "src/taxes/pattern_figure.hpp"

namespace untax {

/// The measurements for each problem.
struct overlap_settings {
  std::vector<pattern> patterns;  ///< in addition to bulk_library, which is always measured
  int repeats = 20;
  bool eager = true;        ///< also bulk_library, launched eagerly
  bool parts = true;        ///< also the GEMMs alone, and NCCL alone
  bool check_after = true;  ///< results are checked before the timed runs, and after them
  bool capacity = false;    ///< also `automatic` of a capacity, as PyTorch's operators are planned
};

/// Times the patterns of a GEMM operator on GPUs in turn, captured in graphs, on the same matrices.
/// Weights are at different places, in more memory than caches hold.
class overlap_measurement {
 public:
  /// `team` and `entry` have to outlive it.
  overlap_measurement(gpu_team& team, const operator_entry& entry, overlap_settings settings);
  overlap_measurement(const overlap_measurement&) = delete;
  overlap_measurement& operator=(const overlap_measurement&) = delete;
  ~overlap_measurement();

  /// A pattern that refuses the problem is in the result without a time. Elements have 16 bits.
  [[nodiscard]] std::vector<pattern_figure> measure(const gemm_problem& problem);

  /// The symmetric memory, in bytes, that each rank needs for the largest of `problems`, with the
  /// operators of a capacity if `capacity`.
  [[nodiscard]] static std::size_t heap_for_any(const std::vector<gemm_problem>& problems,
                                                int ranks, std::size_t patterns,
                                                bool capacity = false);

 private:
  struct pattern_case {
    std::size_t figure = 0;
    int number = -1;  ///< number of the operator; -1: a part of an operator, alone
    benchmark_case it;
  };

  [[nodiscard]] overlap_work& at(int rank) { return *work_[static_cast<std::size_t>(rank)]; }
  void plan_all(std::vector<pattern_figure>& figures, std::vector<pattern_case>& cases);
  void plan_one(std::vector<pattern_figure>& figures, std::vector<pattern_case>& cases, pattern how,
                std::int64_t rows);
  [[nodiscard]] int plan(pattern_figure& figure, pattern how, std::int64_t rows);
  void plan_parts(std::vector<pattern_figure>& figures, std::vector<pattern_case>& cases);
  void verify(std::vector<pattern_figure>& figures, const std::vector<pattern_case>& cases,
              int times);

  gpu_team& team_;
  const operator_entry& entry_;
  overlap_settings settings_;
  std::vector<std::unique_ptr<overlap_work>> work_;
  std::vector<std::shared_ptr<bulk::communicator>> communicators_;
};

}  // namespace untax

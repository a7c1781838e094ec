#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "ops/common/workload.hpp"
#include "src/taxes/cuda/benchmark_case.hpp"
#include "src/taxes/cuda/overlap_work.hpp"
#include "src/taxes/pattern_figure.hpp"

namespace untax {

/// What is measured at each problem.
struct overlap_settings {
  std::vector<pattern> patterns;  ///< beside bulk_library, which is always measured
  int repeats = 20;
  bool eager = true;        ///< bulk_library, launched eagerly, too
  bool parts = true;        ///< the GEMMs and what NCCL sends alone, too
  bool check_after = true;  ///< results are checked before the timed runs, and after them
};

/// Times a GEMM operator of GPUs in its patterns, captured in graphs, in turn, on the same
/// matrices; weights go round in more memory than caches hold.
class overlap_measurement {
 public:
  /// `team` and `entry` have to outlive it.
  overlap_measurement(gpu_team& team, const operator_entry& entry, overlap_settings settings);
  overlap_measurement(const overlap_measurement&) = delete;
  overlap_measurement& operator=(const overlap_measurement&) = delete;
  ~overlap_measurement();

  /// A pattern that refuses is in the result without a time. Elements have 16 bits.
  [[nodiscard]] std::vector<pattern_figure> measure(const gemm_problem& problem);

  /// Symmetric memory of each rank that it takes for the largest of `problems`.
  [[nodiscard]] static std::size_t heap_for_any(const std::vector<gemm_problem>& problems,
                                                int ranks, std::size_t patterns);

 private:
  struct pattern_case {
    std::size_t figure = 0;
    int number = -1;  ///< of the operator; -1: it is none, but a part
    benchmark_case it;
  };

  [[nodiscard]] overlap_work& at(int rank) { return *work_[static_cast<std::size_t>(rank)]; }
  void plan_all(std::vector<pattern_figure>& figures, std::vector<pattern_case>& all);
  [[nodiscard]] int plan(pattern_figure& figure, pattern how);
  void plan_parts(std::vector<pattern_figure>& figures, std::vector<pattern_case>& all);
  void verify(std::vector<pattern_figure>& figures, const std::vector<pattern_case>& all,
              int times);

  gpu_team& team_;
  const operator_entry& entry_;
  overlap_settings settings_;
  std::vector<std::unique_ptr<overlap_work>> work_;
  std::vector<std::shared_ptr<bulk::communicator>> communicators_;
};

}  // namespace untax

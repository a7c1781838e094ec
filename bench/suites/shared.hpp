#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bench/suites/trace_cost.hpp"
#include "ops/common/workload.hpp"
#include "src/taxes/pattern_figure.hpp"

namespace untax::bench {

/// Operators between ranks that share one GPU. Their times say nothing about links; they are for
/// comparing builds of untax with each other: the cost of a change in kernels that also send, wait
/// and signal.
struct shared_options {
  /// Numbers of ranks; with 1 a rank sends to itself, which shows the cost of sums over ranks.
  std::vector<int> rank_counts = {2, 4};
  std::vector<std::string> operators;  ///< empty: those of `default_operators`
  std::vector<std::int64_t> sizes;     ///< rows of A; empty: problems are drawn at random
  int problems = 12;                   ///< of each operator, where they are drawn
  std::uint64_t seed = 1;              ///< of the problems and of the elements of matrices
  int repeats = 20;                    ///< times of each pattern
  std::optional<dtype> partials;       ///< of sums over ranks: fp32; empty: as the problem
  bool traced = false;                 ///< also times runs while a trace is recorded, which the
                                       ///< process must be recording
  /// Called after each problem. May be empty.
  std::function<void()> progress;
};

/// One operator at one problem, in all patterns that ranks which share a GPU have.
struct shared_row {
  std::string operator_name;
  int ranks = 0;
  gemm_problem problem;
  double tolerance = 0;
  std::vector<pattern_figure> figures;
};

struct shared_report {
  std::string device;
  std::uint64_t seed = 0;
  std::vector<shared_row> rows;

  bool traced = false;  ///< figures have `traced_time`

  /// The cost of recording; nothing without `traced`.
  [[nodiscard]] trace_cost cost_of_trace() const;
  /// Whether all results are right.
  [[nodiscard]] bool right() const;
};

/// The number of calls of `progress`.
[[nodiscard]] int steps_of(const shared_options& options);

/// The problems of an operator, the same for the same seed: m from 64 to 4096 and n and k, which
/// are multiples of 8, from 512 to 8192, all log-uniform; bf16 and fp16; with a gather both axes.
[[nodiscard]] std::vector<gemm_problem> shared_problems(const std::string& operator_name,
                                                        std::uint64_t seed, int count);

/// Few and many rows, by weights of 8192 columns: for `sizes`, and for one rank, which sends to
/// itself.
[[nodiscard]] std::vector<gemm_problem> problems_of_sizes(const std::vector<std::int64_t>& sizes,
                                                          std::optional<dtype> partials);

/// The operators that sum nothing; with one rank, those that sum.
[[nodiscard]] std::vector<std::string> default_operators(int ranks);

/// The problems at which an operator is measured. Throws `invalid_argument` for an unknown one.
[[nodiscard]] std::vector<gemm_problem> problems_of(const shared_options& options,
                                                    const std::string& operator_name, int ranks);

/// Times the fused patterns of operators. For sums over ranks `automatic` comes first; in a world
/// of one rank it is the GEMM alone. Times are by the clock of the GPU, of several consecutive
/// runs, without NCCL. Every result is compared with a reference before and after. Worlds with and
/// without a recording follow each other, twice. Throws `unsupported` if there is no GPU, or no
/// CUDA.
[[nodiscard]] shared_report run_shared_suite(const shared_options& options);

}  // namespace untax::bench

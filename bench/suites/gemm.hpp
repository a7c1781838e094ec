#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <untax/core/types.hpp>
#include <untax/taxes/report.hpp>

#include "bench/suites/trace_cost.hpp"
#include "engines/gpu/gemm/plan.hpp"

namespace untax::bench {

struct gemm_suite_options {
  int repeats = 20;
  dtype type = dtype::bf16;
  std::vector<std::int64_t> sizes;  ///< values of m; all of the grid if empty
  /// How many problems are drawn instead of the grid, and the seed that they are drawn from.
  int problems = 0;
  std::uint32_t seed = 1;
  /// Of these only those with so many rows of A are measured.
  std::int64_t least_rows = 1;
  std::int64_t most_rows = 16384;
  bool every_plan = false;         ///< times all plans that the model does not rule out, not one
  bool rasters = false;            ///< times it also with other bands of tiles
  bool invariant = false;          ///< times the plan for rows of the same bits in any batch, too
  bool traced = false;             ///< times it also while a trace is recorded, which one has to be
  double seconds = 0;              ///< no problem begins later than this; 0: all are measured
  std::function<void()> progress;  ///< called after each shape. May be empty
};

/// A plan, and how long it took.
struct timed_plan {
  gpu::gemm_plan plan;
  double seconds = 0;         ///< of one product, the median
  double relative_error = 0;  ///< against cuBLASLt, in the Frobenius norm
};

/// C[m, n] = A[m, k] * B[n, k]^T by untax and by the best of cuBLASLt's heuristics.
struct gemm_row {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  spread time;                ///< seconds of one product in a graph of several
  spread library_time;        ///< likewise
  spread invariant_time;      ///< with `invariant`: likewise, of the plan for such rows
  spread traced_time;         ///< with `traced`: likewise, while a trace is recorded
  std::string plan;           ///< how untax did it
  double relative_error = 0;  ///< against cuBLASLt, in the Frobenius norm
  /// With `every_plan`: all that were timed, by the model's order. With `rasters`: the plan that is
  /// taken, and, where they differ, that with the usual bands of tiles and those of a search.
  std::vector<timed_plan> plans;

  /// How much longer the library takes.
  [[nodiscard]] double ratio() const noexcept { return library_time.median / time.median; }
  [[nodiscard]] double flops() const noexcept;         ///< a second
  [[nodiscard]] double weight_bytes() const noexcept;  ///< a second
  /// Whether the weights are what costs.
  [[nodiscard]] bool skinny() const noexcept { return m <= 64; }
  /// Whether there are as few rows as drawn problems are judged apart for.
  [[nodiscard]] bool few_rows() const noexcept { return m <= 128; }
  /// Bytes of weights a second to reach, or 0.
  [[nodiscard]] double rate_bar() const noexcept;
  /// Whether a bar of this shape is met: skinny ones have their own, the others one together.
  [[nodiscard]] bool met() const noexcept;
};

struct gemm_report {
  std::string device;
  std::string library;  ///< "cuBLASLt 13.0.2"
  dtype type = dtype::bf16;
  std::vector<gemm_row> rows;
  bool drawn = false;              ///< problems, and not the grid
  std::uint32_t seed = 1;          ///< that they were drawn from
  int left_out = 0;                ///< problems that there was no time for
  std::vector<std::string> wrong;  ///< with `every_plan`: the plans whose results are wrong
  bool invariant = false;          ///< rows have `invariant_time`
  bool traced = false;             ///< rows have `traced_time`

  /// Geometric mean of how much longer the plans for rows of the same bits take; 1 without such.
  [[nodiscard]] double cost_of_invariant() const noexcept;
  /// What recording costs; nothing without `traced`.
  [[nodiscard]] trace_cost cost_of_trace() const;
  /// Geometric mean of the ratios of rows that are skinny or are not; of drawn problems, that have
  /// few rows or many. 1 if there are none.
  [[nodiscard]] double mean_ratio(bool few) const noexcept;
  /// What it has to be at least, and what the ratio of each drawn problem has to be; 0: nothing.
  [[nodiscard]] double mean_bar(bool few) const noexcept;
  [[nodiscard]] double least_bar() const noexcept { return drawn ? 0.90 : 0; }
  /// The row with the least ratio, or null.
  [[nodiscard]] const gemm_row* worst() const noexcept;
  [[nodiscard]] bool met() const noexcept;
};

/// Times both in turn, on N(0, 1) in buffers that together are larger than L2, on the current GPU;
/// compares the results. With `every_plan` the row's time is that of the plan that the model likes
/// best. Throws `unsupported` where there is no GPU, no cuBLASLt or no CUDA,
/// `internal` where a result is wrong.
[[nodiscard]] gemm_report run_gemm_suite(const gemm_suite_options& options);

/// How often `progress` is called.
[[nodiscard]] int steps_of(const gemm_suite_options& options);

/// The shapes that the suite measures, without times: the grid, or what is drawn. Then m is
/// log-uniform in 1 to 16384, and n and k are those of models, one of the two divided by 1, 2, 4 or
/// 8; the same on every machine.
[[nodiscard]] std::vector<gemm_row> gemm_shapes(const gemm_suite_options& options);

}  // namespace untax::bench

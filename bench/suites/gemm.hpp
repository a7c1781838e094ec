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
  /// The number of random problems instead of the grid, and their seed.
  int problems = 0;
  std::uint32_t seed = 1;
  /// Only random problems with rows of A in this range are measured.
  std::int64_t least_rows = 1;
  std::int64_t most_rows = 16384;
  bool every_plan = false;         ///< times all plans that the model does not rule out, not one
  bool rasters = false;            ///< times the plan also with other raster groups
  bool invariant = false;          ///< times also the plan with the same row bits in any batch
  bool traced = false;             ///< also times the plan while a trace is recorded
  double seconds = 0;              ///< no problem begins later than this; 0: all are measured
  std::function<void()> progress;  ///< called after each shape. May be empty
};

/// A plan and its time.
struct timed_plan {
  gpu::gemm_plan plan;
  double seconds = 0;         ///< of one product, the median
  double relative_error = 0;  ///< against cuBLASLt (`deviation`)
};

/// C[m, n] = A[m, k] * B[n, k]^T by untax and by the best of cuBLASLt's heuristics.
struct gemm_row {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  spread time;                ///< seconds of one product in a graph of several
  spread library_time;        ///< likewise
  spread invariant_time;      ///< with `invariant`: likewise, of the plan with the same row bits in
                              ///< any batch
  spread traced_time;         ///< with `traced`: likewise, while a trace is recorded
  std::string plan;           ///< the plan of untax
  double relative_error = 0;  ///< against cuBLASLt (`deviation`)
  /// With `every_plan`: all plans that were timed, in the model's order. With `rasters`: the chosen
  /// plan and, if they differ, those with the usual raster group and with that of a search.
  std::vector<timed_plan> plans;

  /// The time of the library over that of untax.
  [[nodiscard]] double ratio() const noexcept { return library_time.median / time.median; }
  [[nodiscard]] double flops() const noexcept;         ///< a second
  [[nodiscard]] double weight_bytes() const noexcept;  ///< a second
  /// Whether reading the weights takes most of the time.
  [[nodiscard]] bool skinny() const noexcept { return m <= 64; }
  /// Whether a random problem is judged with those of few rows.
  [[nodiscard]] bool few_rows() const noexcept { return m <= 128; }
  /// The bytes of weights per second to reach, or 0.
  [[nodiscard]] double rate_bar() const noexcept;
  /// Whether the bars of a skinny shape are met. Other shapes share one bar, for their mean.
  [[nodiscard]] bool met() const noexcept;
};

struct gemm_report {
  std::string device;
  std::string library;  ///< "cuBLASLt 13.0.2"
  dtype type = dtype::bf16;
  std::vector<gemm_row> rows;
  bool drawn = false;              ///< rows are random problems
  std::uint32_t seed = 1;          ///< of the random problems
  int left_out = 0;                ///< problems that were not measured for lack of time
  std::vector<std::string> wrong;  ///< with `every_plan`: the plans whose results are wrong
  bool invariant = false;          ///< rows have `invariant_time`
  bool traced = false;             ///< rows have `traced_time`

  /// The geometric mean of the times of plans whose row bits are the same in any batch, relative to
  /// the usual plans; 1 without such times.
  [[nodiscard]] double cost_of_invariant() const noexcept;
  /// The cost of recording; empty without `traced`.
  [[nodiscard]] trace_cost cost_of_trace() const;
  /// The geometric mean of the ratios of skinny rows or of others; for random problems, of those
  /// with few rows or with many. 1 if there are none.
  [[nodiscard]] double mean_ratio(bool few) const noexcept;
  /// The bars for that mean and for the ratio of each random problem; 0: none.
  [[nodiscard]] double mean_bar(bool few) const noexcept;
  [[nodiscard]] double least_bar() const noexcept { return drawn ? 0.90 : 0; }
  /// The row with the least ratio, or null.
  [[nodiscard]] const gemm_row* worst() const noexcept;
  [[nodiscard]] bool met() const noexcept;
};

/// Times untax and the library in turn on the current GPU, on N(0, 1) in buffers that together
/// exceed L2, and compares the results. With `every_plan` a row's time is that of the plan that the
/// model ranks first. Throws `unsupported` if there is no GPU, no cuBLASLt or no CUDA, and
/// `internal` if a result is wrong.
[[nodiscard]] gemm_report run_gemm_suite(const gemm_suite_options& options);

/// The number of calls of `progress`.
[[nodiscard]] int steps_of(const gemm_suite_options& options);

/// The shapes that the suite measures, without times: the grid, or random ones, which are the same
/// on every machine. Then m is log-uniform in 1 to 16384, and n and k are those of models, one of
/// the two divided by 1, 2, 4 or 8.
[[nodiscard]] std::vector<gemm_row> gemm_shapes(const gemm_suite_options& options);

}  // namespace untax::bench

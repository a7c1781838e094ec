#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <untax/core/types.hpp>
#include <untax/taxes/report.hpp>

namespace untax::bench {

struct gemm_suite_options {
  int repeats = 20;
  dtype type = dtype::bf16;
  std::vector<std::int64_t> sizes;  ///< values of m; all of them if empty
  std::function<void()> progress;   ///< called after each shape. May be empty
};

/// C[m, n] = A[m, k] * B[n, k]^T by untax and by the best of cuBLASLt's heuristics.
struct gemm_row {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  spread time;                ///< seconds of one product in a graph of several
  spread library_time;        ///< likewise
  std::string plan;           ///< how untax did it
  double relative_error = 0;  ///< against cuBLASLt, in the Frobenius norm

  /// How much longer the library takes.
  [[nodiscard]] double ratio() const noexcept { return library_time.median / time.median; }
  [[nodiscard]] double flops() const noexcept;         ///< a second
  [[nodiscard]] double weight_bytes() const noexcept;  ///< a second
  /// Whether the weights are what costs.
  [[nodiscard]] bool skinny() const noexcept { return m <= 64; }
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

  /// Geometric mean of the ratios of skinny shapes, or of the others. 1 if there are none.
  [[nodiscard]] double mean_ratio(bool skinny) const noexcept;
  [[nodiscard]] bool met() const noexcept;
};

/// What `mean_ratio(false)` has to be at least.
inline constexpr double gemm_mean_bar = 0.97;

/// Times both in turn, on N(0, 1) in buffers that together are larger than L2, on the current GPU;
/// compares the results. Throws `unsupported` where there is no GPU, no cuBLASLt or no CUDA,
/// `internal` where a result is wrong.
[[nodiscard]] gemm_report run_gemm_suite(const gemm_suite_options& options);

/// How often `progress` is called.
[[nodiscard]] int steps_of(const gemm_suite_options& options);

/// The shapes that the suite measures, without times.
[[nodiscard]] std::vector<gemm_row> gemm_shapes(const gemm_suite_options& options);

}  // namespace untax::bench

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <untax/core/types.hpp>

#include "bench/suites/overlap.hpp"
#include "src/taxes/pattern_figure.hpp"

namespace untax::bench {

struct norm_suite_options {
  int ranks = 0;  ///< 0: all GPUs
  int repeats = 20;
  std::vector<std::int64_t> tokens = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096};
  std::vector<std::int64_t> hidden = {4096, 8192, 16384};
  std::function<void()> progress;  ///< called for each number of tokens of each size. May be empty
};

// Values of `by`, in addition to those of pattern_figure.hpp. bulk_library is NCCL's all-reduce,
// then a kernel that adds the residual and normalises.
inline constexpr const char* norm_fused = "all_reduce_norm";
inline constexpr const char* norm_one_phase = "one phase";
inline constexpr const char* norm_two_phases = "two phases";
inline constexpr const char* sum_alone = "all_reduce";
inline constexpr const char* direct_sum_alone = "all_reduce direct";
inline constexpr const char* library_sum_alone = "NCCL alone";

/// The measurements for one number of tokens, all made in turn.
struct norm_row {
  std::int64_t tokens = 0;
  std::int64_t hidden = 0;
  std::vector<pattern_figure> figures;

  /// Seconds of a figure, or 0 if there is none.
  [[nodiscard]] double seconds_of(const std::string& by) const noexcept;
  /// The time of untax's all_reduce of as many elements: the faster of both ways.
  [[nodiscard]] double sum_seconds() const noexcept;
};

struct norm_report {
  int ranks = 0;
  dtype type = dtype::bf16;
  std::string device;
  std::string library;  ///< "NCCL 2.28.9"
  std::vector<norm_row> rows;

  /// The bars: the fused operator less all_reduce up to `few_tokens`, and against bulk_library.
  [[nodiscard]] std::vector<overlap_bar> bars() const;
  /// Whether all results are right, and all bars are met.
  [[nodiscard]] bool met() const;
};

inline constexpr std::int64_t few_tokens = 128;
/// The largest relative error of a normalised row of bf16.
inline constexpr double norm_tolerance = 4e-3;

/// The symmetric memory of a rank: inputs, results and buffers of all variants at once.
[[nodiscard]] std::size_t heap_for(const norm_suite_options& options, int ranks) noexcept;

/// Times the fused operator between GPUs in graphs, with the phases that untax chooses, in one
/// phase and in two, in turn with untax's all_reduce and with NCCL's followed by a kernel that
/// normalises. Sums have to be exact, which inputs allow; normalised rows are compared with fp64.
/// Throws `unsupported` if there are fewer than two GPUs, or no CUDA.
[[nodiscard]] norm_report run_norm_suite(const norm_suite_options& options);

}  // namespace untax::bench

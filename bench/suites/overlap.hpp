#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <untax/core/pattern.hpp>
#include <untax/core/types.hpp>
#include <untax/taxes/report.hpp>

#include "ops/common/workload.hpp"
#include "src/taxes/pattern_figure.hpp"

namespace untax::bench {

/// Shapes that are measured, and judged, together.
enum class overlap_shapes : std::uint8_t {
  prefill,  ///< many rows: compute and link dominate
  decode,   ///< few rows: reading the weights dominates
};

struct overlap_options {
  std::string operator_name;  ///< a GEMM operator that GPUs have
  int ranks = 0;              ///< 0: all GPUs
  int repeats = 20;
  overlap_shapes shapes = overlap_shapes::prefill;
  std::vector<gemm_problem> problems;  ///< 16-bit elements
  std::optional<std::uint64_t> seed;   ///< of the rows, if they were drawn
  /// Patterns beside bulk_library, which is always measured. With `automatic` an operator of a
  /// capacity is measured, too.
  std::vector<pattern> patterns;
  std::function<void()> progress;  ///< called after each problem. May be empty
};

struct overlap_row {
  gemm_problem problem;
  overlap_shapes shapes = overlap_shapes::prefill;
  std::vector<pattern_figure> figures;
  double compute_bound = 0;  ///< seconds: the library's GEMM alone, or reading the weights
  double link_bound = 0;     ///< seconds: the bytes that a rank sends, at the rate of its link
  double tolerance = 0;

  [[nodiscard]] double bound() const noexcept;
  [[nodiscard]] const pattern_figure* figure_of(const std::string& by) const noexcept;
  /// Seconds of a figure, or 0 if there is none.
  [[nodiscard]] double seconds_of(const std::string& by) const noexcept;
  /// The fastest of untax's patterns that were asked for by name, with right results; null if there
  /// is none.
  [[nodiscard]] const pattern_figure* best() const noexcept;
  [[nodiscard]] bool right(const pattern_figure& f) const noexcept;
};

struct overlap_factors {
  double mean = 0;
  double least = 0;
};

/// A bar, and the measured value.
struct overlap_bar {
  std::string what;
  double value = 0;
  double bar = 0;
  bool at_most = false;

  [[nodiscard]] bool met() const noexcept { return at_most ? value <= bar : value >= bar; }
};

struct overlap_report {
  std::string operator_name;
  int ranks = 0;
  dtype type = dtype::bf16;
  std::string device;
  std::string library;     ///< "cuBLASLt 13.0.2, NCCL 2.28.9"
  double link_rate = 0;    ///< bytes a second that a rank sends, all ranks at once
  double memory_rate = 0;  ///< bytes a second that are read from memory
  overlap_shapes shapes = overlap_shapes::prefill;
  std::optional<std::uint64_t> seed;  ///< of the rows, if they were drawn
  std::vector<overlap_row> rows;

  /// Geometric means and extremes over the rows that have a figure of untax's own, with their bars,
  /// and the least factors of `automatic`.
  [[nodiscard]] std::vector<overlap_bar> bars() const;
  /// The times of bulk_library in a graph over those of `label`, of the rows that have both: mean
  /// (geometric) and least. Nothing if no row has.
  [[nodiscard]] std::optional<overlap_factors> library_over(const std::string& label) const;
  /// Whether all results are right, and all bars are met.
  [[nodiscard]] bool met() const;

 private:
  [[nodiscard]] std::vector<overlap_bar> pattern_bars() const;
};

[[nodiscard]] const char* name_of(overlap_shapes shapes) noexcept;
/// The shapes of a suite for an operator; if `m` is not empty, only those with these rows. Includes
/// shapes for which a public kernel's time with this number of ranks is known. Partial results have
/// the type of the elements.
[[nodiscard]] std::vector<gemm_problem> overlap_problems(const std::string& operator_name,
                                                         overlap_shapes shapes, int ranks,
                                                         const std::vector<std::int64_t>& m);
/// `count` problems with weights of the suite and rows drawn by `seed`, log-uniformly: 1 to 512 in
/// decode, 513 to 16384 in prefill.
[[nodiscard]] std::vector<gemm_problem> random_overlap_problems(const std::string& operator_name,
                                                                overlap_shapes shapes, int count,
                                                                std::uint64_t seed);

/// Times an operator of GPUs in its patterns, captured in graphs, in turn with bulk_library in a
/// graph and launched eagerly, and with its parts alone. Every result is compared with a reference
/// before and after. Throws `unsupported` where there are fewer than two GPUs, or no CUDA.
[[nodiscard]] overlap_report run_overlap_suite(const overlap_options& options);

}  // namespace untax::bench

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <untax/core/types.hpp>
#include <untax/ops/flash_decode_problem.hpp>
#include <untax/taxes/report.hpp>

namespace untax::bench {

/// Heads of a model, for which batches and lengths are measured.
struct attention_heads {
  std::string name;  ///< "paper", "70b", ...
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
};

/// The heads that the command knows: the case study of arXiv 2511.02168, and those of Llama models.
[[nodiscard]] const std::vector<attention_heads>& known_attention_heads();

struct attention_suite_options {
  int ranks = 0;  ///< 0: all GPUs; 1: the local kernel only
  int repeats = 20;
  std::vector<attention_heads> heads;
  std::vector<std::int64_t> batches;
  std::vector<std::int64_t> keys;  ///< of a sequence at a rank
  std::int64_t page_size = 0;
  int problems = 0;        ///< number of random problems instead of these
  std::uint64_t seed = 1;  ///< of the random problems
  dtype partials = dtype::f32;
  /// Called after each problem. May be empty.
  std::function<void()> progress;
};

/// One measurement of a problem. The measurements of a problem take turns.
struct attention_figure {
  std::string by;  ///< "local", "fused_sequential", "bulk_library", "bulk_library eager", ...
  spread time;     ///< seconds of one run
};

struct attention_row {
  std::string name;
  flash_decode_problem problem;
  std::vector<attention_figure> figures;

  /// Bytes of keys and values at one rank.
  [[nodiscard]] double bytes() const noexcept;
  /// Seconds of a figure; 0 if there is none.
  [[nodiscard]] double seconds_of(const std::string& by) const noexcept;
};

/// A bar for the table, and the measured value.
struct attention_bar {
  std::string what;
  double value = 0;
  double bar = 0;
  bool at_most = false;

  [[nodiscard]] bool met() const noexcept { return at_most ? value <= bar : value >= bar; }
};

struct attention_report {
  int ranks = 0;
  dtype type = dtype::bf16;
  std::string device;
  std::string library;     ///< "NCCL 2.28.9"
  double memory_rate = 0;  ///< bytes per second that are read from memory
  std::vector<attention_row> rows;

  [[nodiscard]] double bound(const attention_row& row) const noexcept {
    return row.bytes() / memory_rate;
  }
  [[nodiscard]] std::vector<attention_bar> bars() const;
};

/// The problems that fit into the memory of a GPU; random ones have 2 MB to 2 GB.
[[nodiscard]] std::vector<attention_row> attention_problems(const attention_suite_options& options);

/// Times the local kernel alone and flash_decode in its patterns, in graphs, in turn with
/// bulk_library launched eagerly. First checks that all patterns give the same bits and, for a few
/// rows, the values of a plain kernel. Throws `unsupported` with too few GPUs, or no CUDA.
[[nodiscard]] attention_report run_attention_suite(const attention_suite_options& options);

}  // namespace untax::bench

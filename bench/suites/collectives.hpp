#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <untax/ops/collective_problems.hpp>
#include <untax/taxes/report.hpp>

namespace untax::bench {

enum class collective_kind { all_gather, reduce_scatter, all_reduce, all_to_all, broadcast };

[[nodiscard]] const char* name_of(collective_kind kind) noexcept;
[[nodiscard]] std::vector<collective_kind> all_collective_kinds();

/// An alternative that is measured in turn: a variant of a collective of untax.
struct collective_variant {
  std::string name;
  collective_options options;
};

struct collective_suite_options {
  int ranks = 0;  ///< 0: all GPUs
  int repeats = 20;
  dtype type = dtype::bf16;
  std::vector<collective_kind> kinds = all_collective_kinds();
  /// Bytes of the whole vector: the result of all_gather, the input of the others.
  std::vector<std::int64_t> sizes;
  /// NCCL is added if it is installed, and NCCL on symmetric windows if it supports them.
  std::vector<collective_variant> variants = {{"untax", {}}, {"untax direct", {.direct = true}}};
  std::function<void()> progress;  ///< called for each kind and size. May be empty
};

/// The result of one variant at one size.
struct collective_figure {
  std::string variant;
  bool library = false;
  std::string explanation;     ///< the plan that was chosen; empty for NCCL
  std::optional<spread> time;  ///< seconds of one run in a graph of several; nothing if refused
  std::string refusal;         ///< the reason of a refusal
};

struct collective_row {
  collective_kind kind = collective_kind::all_reduce;
  std::int64_t bytes = 0;
  std::vector<collective_figure> figures;

  /// The fewest bytes that a rank has to send, in the best algorithm.
  [[nodiscard]] double sent_bytes(int ranks) const noexcept;
  /// The variant `name`, or null.
  [[nodiscard]] const collective_figure* figure_of(const std::string& name) const noexcept;
  /// The quicker figure of NCCL, plain or on windows; null without NCCL.
  [[nodiscard]] const collective_figure* library() const noexcept;
};

struct collective_report {
  int ranks = 0;
  dtype type = dtype::bf16;
  std::string device;
  std::string library;  ///< "NCCL 2.28.9", or why it is not there
  std::vector<collective_row> rows;
};

/// The default sizes of the suite: 1 KB to 1 GB.
[[nodiscard]] std::vector<std::int64_t> default_collective_sizes();

/// Times collectives of GPUs in graphs, the variants in turn. Results are compared with those of
/// NCCL, or of the first variant, on inputs whose sums are exact. Throws `unsupported` if there are
/// fewer than two GPUs, or no CUDA, and `internal` if an element is wrong.
[[nodiscard]] collective_report run_collective_suite(const collective_suite_options& options);

}  // namespace untax::bench

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

/// What is measured in turn: a way to carry a collective out, or NCCL.
struct collective_variant {
  std::string name;
  bool library = false;
  collective_options options;
};

struct collective_suite_options {
  int ranks = 0;  ///< 0: all GPUs
  int repeats = 20;
  dtype type = dtype::bf16;
  std::vector<collective_kind> kinds = all_collective_kinds();
  /// Bytes of the whole vector: the result of all_gather, the input of the others.
  std::vector<std::int64_t> sizes;
  /// NCCL is added where it is there.
  std::vector<collective_variant> variants = {{"untax", false, {}},
                                              {"untax direct", false, {.direct = true}}};
  std::function<void()> progress;  ///< called for each kind and size. May be empty
};

/// What one variant did at one size.
struct collective_figure {
  std::string variant;
  bool library = false;
  std::string explanation;     ///< what was chosen; empty for NCCL
  std::optional<spread> time;  ///< seconds of one run in a graph of several; none if it refused
  std::string refusal;         ///< why it did
};

struct collective_row {
  collective_kind kind = collective_kind::all_reduce;
  std::int64_t bytes = 0;
  std::vector<collective_figure> figures;

  /// Bytes that a rank has to send, in the best algorithm, at the very least.
  [[nodiscard]] double sent_bytes(int ranks) const noexcept;
  /// The variant `name`, or null.
  [[nodiscard]] const collective_figure* figure_of(const std::string& name) const noexcept;
  [[nodiscard]] const collective_figure* library() const noexcept;
};

struct collective_report {
  int ranks = 0;
  dtype type = dtype::bf16;
  std::string device;
  std::string library;  ///< "NCCL 2.28.9", or why it is not there
  std::vector<collective_row> rows;
};

/// The sizes that the suite takes unless told otherwise: 1 KB to 1 GB.
[[nodiscard]] std::vector<std::int64_t> default_collective_sizes();

/// Times collectives of GPUs, captured in graphs, the variants in turn. Every result is compared
/// with NCCL's, or with that of the first variant, on inputs whose sums are exact. Throws
/// `unsupported` where there are fewer than two GPUs or CUDA was not compiled in, `internal` where
/// an element is wrong.
[[nodiscard]] collective_report run_collective_suite(const collective_suite_options& options);

}  // namespace untax::bench

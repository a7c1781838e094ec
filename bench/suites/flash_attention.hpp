#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <untax/core/types.hpp>
#include <untax/taxes/report.hpp>

namespace untax::bench {

/// Attention of all queries of some sequences of one length, on one GPU.
struct flash_problem {
  int batch = 1;
  int heads = 1;
  int kv_heads = 1;
  int head_dim = 128;
  int queries = 0;
  int keys = 0;
  bool causal = false;
  dtype type = dtype::bf16;

  /// The FLOPs of both products, without masked parts.
  [[nodiscard]] double flops() const noexcept;
};

struct flash_figure {
  std::string order;
  spread time;  ///< seconds of one run
};

struct flash_row {
  flash_problem problem;
  std::vector<flash_figure> figures;  ///< the first one is of `automatic`
};

struct flash_suite_options {
  int repeats = 20;
  int problems = 0;  ///< number of random problems instead of the grid
  std::uint64_t seed = 1;
  bool every_order = false;
  /// Called after each problem. May be empty.
  std::function<void()> progress;
};

struct flash_report {
  std::string device;
  std::vector<flash_row> rows;
};

/// The problems that are measured: the grid, or random ones.
[[nodiscard]] std::vector<flash_problem> flash_problems(const flash_suite_options& options);

/// Times the kernel on the current device, in each order in turn. Throws `unsupported` where there
/// is no GPU, or no CUDA.
[[nodiscard]] flash_report run_flash_suite(const flash_suite_options& options);

}  // namespace untax::bench

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <untax/taxes/report.hpp>

namespace untax::bench {

/// The table of the rma suite that a row belongs to.
enum class rma_table {
  blocks,   ///< rates of one pair by the number of blocks
  sizes,    ///< rates of one pair by size
  pairs,    ///< rates of every pair
  all,      ///< rates of all ranks at once
  latency,  ///< times of signals and barriers
  atomics,  ///< times of an atomic operation, over all threads that carry them out
};

/// One measurement: bytes that a rank moved in `time`, or a time alone if `bytes` is 0.
struct rma_figure {
  rma_table table = rma_table::blocks;
  std::string what;    ///< "put", "tile get", "barrier, 4 ranks"
  std::string method;  ///< "stores by block", "bulk", "signal by maximum"
  int from = 0;        ///< the rank whose kernel runs
  int to = 1;          ///< the peer; -1: all, or the next
  int blocks = 0;
  std::int64_t bytes = 0;
  spread time;       ///< seconds
  double bound = 0;  ///< bytes a second that the link can carry, or seconds; 0: not known
  double bar = 0;    ///< bytes a second to reach, or seconds not to pass; 0: none

  /// Bytes per second.
  [[nodiscard]] double rate() const noexcept { return static_cast<double>(bytes) / time.median; }
  /// Whether this figure alone meets the bar.
  [[nodiscard]] bool met() const noexcept {
    if (bar == 0) return true;
    return bytes > 0 ? rate() >= bar : time.median <= bar;
  }
};

struct rma_suite_options {
  int ranks = 0;  ///< 0: all GPUs
  int repeats = 20;
  std::function<void()> progress;  ///< called after each repeat of each group. May be empty
};

struct rma_report {
  int ranks = 0;
  std::string device;  ///< name of the GPUs
  std::vector<rma_figure> figures;
};

/// Measures the verbs in kernels: their rates over the link, and the times of signals. Checks the
/// data after each measurement. Throws `unsupported` if there are fewer than two GPUs, or no CUDA,
/// and `internal` if a byte is wrong.
[[nodiscard]] rma_report run_rma_suite(const rma_suite_options& options);

/// The number of calls of `progress` for that many ranks.
[[nodiscard]] int steps_of(const rma_suite_options& options);

/// Whether the bar of a figure is met, by it or by another method for the same transfer.
[[nodiscard]] bool met_by_any(const rma_report& report, const rma_figure& figure);

}  // namespace untax::bench

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <untax/locality/kernel.hpp>
#include <untax/locality/simulate.hpp>
#include <untax/taxes/report.hpp>

namespace untax::bench {

/// A kernel of `untax locality` with its sizes, and an order of its blocks.
struct replay_problem {
  std::string name;  ///< as `untax locality list` has it
  locality::kernel::sizes sizes;
  std::string order;  ///< as `untax locality --search` calls it, or "random"

  [[nodiscard]] locality::kernel kernel(int line) const;
  /// The block of each position, and how blocks go through their steps. Random orders depend on
  /// the problem alone.
  [[nodiscard]] locality::schedule schedule(const locality::kernel& k, int domains) const;
};

/// The description of a GPU that a driver calls so; nothing if there is none.
[[nodiscard]] std::optional<locality::device> description_of(std::string name);

/// Seconds of the products of a step at half of the device's peak; 0 if that is not known.
[[nodiscard]] double step_seconds(const locality::kernel& k,
                                  const std::optional<locality::device>& d);

/// What all blocks of a kernel read and write; rectangles that stick out count in full.
[[nodiscard]] double replayed_bytes(const locality::kernel& k);

struct replay_row {
  replay_problem problem;
  int blocks = 0;
  double requested_bytes = 0;                  ///< `replayed_bytes`
  int launches = 0;                            ///< of the kernel, of this row
  spread time;                                 ///< seconds of one run
  std::optional<locality::outcome> simulated;  ///< where the GPU is described
};

struct replay_suite_options {
  int repeats = 20;
  int problems = 0;  ///< so many at random instead of the grid
  std::uint64_t seed = 1;
  /// Called with the number of problems, and then after each. May be empty.
  std::function<void(std::int64_t)> begin;
  std::function<void()> progress;
};

struct replay_report {
  std::string device;     ///< as the driver says it
  std::string described;  ///< the name of its description; empty where there is none
  std::vector<replay_row> rows;
};

/// Those that are measured: each kernel that is built in, and whose blocks do not wait for others,
/// in the order of its numbers, in a random one, and in the best one of a search that a GPU can
/// replay, if that is another; attention with so few keys that a run takes milliseconds. Or what is
/// drawn, as small.
[[nodiscard]] std::vector<replay_problem> replay_problems(const replay_suite_options& options);

/// Has one kernel on the current device read and write what the descriptions say, block by block
/// and step by step: rectangles of operands by 16 bytes, past the first-level cache, and then a
/// pause for as long as the products of a step take at half of the peak. As many blocks are on a
/// multiprocessor as the description says. Throws `unsupported` where there is no GPU, or no CUDA.
[[nodiscard]] replay_report run_replay_suite(const replay_suite_options& options);

}  // namespace untax::bench

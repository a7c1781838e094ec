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
  std::string name;  ///< as `untax locality list` prints it
  locality::kernel::sizes sizes;
  std::string order;  ///< as `untax locality --search` calls it, or "random"

  [[nodiscard]] locality::kernel kernel(int line) const;
  /// The block of each position, and the direction of the steps of blocks. Random orders depend on
  /// the problem alone.
  [[nodiscard]] locality::schedule schedule(const locality::kernel& k, int domains) const;
};

/// The description of the GPU with this driver name; nothing if there is none.
[[nodiscard]] std::optional<locality::device> description_of(std::string name);

/// The seconds of a step's products at half of the device's peak; 0 if that is unknown.
[[nodiscard]] double step_seconds(const locality::kernel& k,
                                  const std::optional<locality::device>& d);

/// The bytes that all blocks read and write; parts beyond the operands count, too.
[[nodiscard]] double replayed_bytes(const locality::kernel& k);

struct replay_row {
  replay_problem problem;
  int blocks = 0;
  double requested_bytes = 0;                  ///< `replayed_bytes`
  int launches = 0;                            ///< launches of the kernel for this row
  spread time;                                 ///< seconds of one run
  std::optional<locality::outcome> simulated;  ///< if the GPU has a description
};

struct replay_suite_options {
  int repeats = 20;
  int problems = 0;  ///< number of random problems instead of the grid
  std::uint64_t seed = 1;
  /// Called with the number of problems, and then after each. May be empty.
  std::function<void(std::int64_t)> begin;
  std::function<void()> progress;
};

struct replay_report {
  std::string device;     ///< the driver's name of the GPU
  std::string described;  ///< name of its description; empty: none
  std::vector<replay_row> rows;
};

/// The problems that are measured: each built-in kernel whose blocks do not wait for others, in the
/// order of its numbers, in a random order, and in the best order of a search that a GPU can
/// replay, if that is another one. Attention has so few keys that a run takes milliseconds. Or
/// random problems of such sizes.
[[nodiscard]] std::vector<replay_problem> replay_problems(const replay_suite_options& options);

/// Replays kernels on the current device: a kernel makes the reads and writes of its description,
/// block by block and step by step. It accesses rectangles of operands by 16 bytes, past the
/// first-level cache, and then pauses for the time of a step's products at half of the peak, with
/// as many blocks on a multiprocessor as described. Throws `unsupported` without GPU or CUDA.
[[nodiscard]] replay_report run_replay_suite(const replay_suite_options& options);

}  // namespace untax::bench

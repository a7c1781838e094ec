#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <untax/taxes/report.hpp>

namespace untax::bench {

/// A kernel with its data, or its blocks, placed by halves of the L2 cache.
struct side_row {
  std::string kernel;
  std::string placement;
  double bytes = 0;  ///< requested from L2 in each run; 0: not known
  spread time;       ///< seconds of one run
  std::optional<spread> watts;
};

struct side_report {
  std::string device;  ///< the driver's name of the GPU
  int sms[2] = {0, 0};
  double near_cycles = 0;  ///< of an atomic whose home is the multiprocessor's own side
  double far_cycles = 0;
  double share_of_side_0 = 0;        ///< of the chunks of memory
  double pairs_apart = 0;            ///< share of neighbouring chunks that are on different sides
  std::optional<double> watts_most;  ///< power limit of the device
  std::vector<side_row> rows;
};

struct side_suite_options {
  int rounds = 5;
  double seconds = 1;  ///< of every round of every row
  std::uint64_t seed = 1;
  /// Called with the number of rows, and then after each kernel with the number of its rows. May be
  /// empty.
  std::function<void(std::int64_t)> begin;
  std::function<void(std::int64_t)> progress;
};

/// Measures the gain, in time and in power, of placing data or work by the two halves of the L2
/// cache of a Hopper GPU. Plain reads, of data in L2 and of larger data: the multiprocessors of
/// each half read data whose home is on their side, on the other side, or half of each. Replays of
/// attention and of a GEMM, and the attention kernel: the first blocks of the order run on one side
/// and the others on the other one, or evenly mixed, or in the order of dispatch. Rows of a kernel
/// take turns, so that all see the same clocks. Throws `unsupported` if there is no GPU, no CUDA,
/// or if no two sides are found.
[[nodiscard]] side_report run_side_suite(const side_suite_options& options);

}  // namespace untax::bench

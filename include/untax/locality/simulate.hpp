#pragma once

#include <cstdint>
#include <vector>

#include <untax/locality/device.hpp>
#include <untax/locality/kernel.hpp>
#include <untax/order/steps.hpp>

namespace untax::locality {

/// The order of blocks and of their steps: the block at each position of the dispatch, and the
/// direction in which blocks go through their steps.
struct schedule {
  std::vector<int> blocks;
  order::direction way = order::direction::forward;
};

/// Assumptions about all kernels on all devices. None of them is fitted to a figure;
/// docs/locality.md gives their sources.
struct assumptions {
  double efficiency = 0.5;  ///< part of the device's peak that a kernel reaches if all reads hit
  /// Of a wave's time at each level but the slowest, the part that is not hidden behind the
  /// slowest.
  double unhidden = 0.5;
  double speed_spread = 0.02;  ///< standard deviation of the speed of processors
  double step_spread = 0.005;  ///< standard deviation of the speed of single steps
  /// Whether a read of data that another block has requested waits until they have arrived.
  bool waits_for_others = false;
  /// the most steps that are simulated if blocks drift, unless `waves` needs more
  double steps = 4e6;
  int waves = 28;  ///< the fewest waves of blocks that are simulated if blocks drift
  /// If blocks drift, small differences of speed decide how many reads hit, so simulations are
  /// repeated with other differences: their number, and the first seed.
  int seeds = 1;
  std::uint64_t seed = 0;
};

/// The part of a kernel that is simulated.
struct effort {
  int domains = 0;  ///< of the device; the other domains are assumed to be like these; 0: all
  int waves = 0;    ///< 0: all waves if blocks keep step, else assumptions::waves
};

/// The result of a simulation. Bytes and seconds are those of the whole kernel.
struct outcome {
  traffic all;
  std::vector<traffic> operands;  ///< reads and writes of each operand, on either side of a cache
  std::vector<traffic> domains;   ///< of the simulated part, for rates
  /// The reads of all operands, and those that the near side of a cache had, as hardware counters
  /// count them.
  traffic near_reads;
  /// Requests as counters count them: a read of a line is one, a write one for each
  /// `device::write` bytes, of which the first misses. Empty if that is not known.
  traffic counted;
  traffic last_level;  ///< empty if there is none
  /// bytes that were read from memory, or written without having been in a cache
  double memory_bytes = 0;
  /// bytes that only the other side of a domain's cache had; these are hits, too
  double far_bytes = 0;
  double next_bytes = 0;  ///< bytes that the domains' caches did not have
  double seconds = 0;     ///< of the kernel
  int blocks = 0;         ///< blocks that were simulated
  double steps = 0;  ///< steps that were simulated; the other steps are assumed to be like these
  double compute_seconds = 0;  ///< seconds of the kernel if reads took no time
  int seeds = 1;               ///< simulations whose mean this is
  /// Twice the standard deviation over these simulations, of the hit rate and of the time.
  double rate_spread = 0;
  double seconds_spread = 0;
};

/// Simulates a kernel whose blocks are ordered by `s`. If blocks drift, it simulates events in the
/// order of time: a block that misses falls behind, and a block that follows finds data that others
/// have fetched. If they do not drift, it simulates wave after wave, with all blocks at the same
/// step. The result is deterministic. Throws `invalid_argument` if `s` has another number of blocks
/// than the kernel.
[[nodiscard]] outcome simulate(const kernel& k, const device& d, const schedule& s,
                               const effort& much = {}, const assumptions& how = {});

}  // namespace untax::locality

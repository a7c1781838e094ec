#pragma once

#include <cstdint>
#include <vector>

#include <untax/locality/device.hpp>
#include <untax/locality/kernel.hpp>
#include <untax/order/steps.hpp>

namespace untax::locality {

/// What runs where and when: the block that each position of the dispatch does, and how blocks go
/// through their steps.
struct schedule {
  std::vector<int> blocks;
  order::direction way = order::direction::forward;
};

/// What is assumed of all kernels on all devices alike. None of it is fitted to a figure; docs/
/// locality.md says where it is from.
struct assumptions {
  double efficiency = 0.5;     ///< of the device's peak, that a kernel reaches whose reads all hit
  double speed_spread = 0.02;  ///< standard deviation of the speed of processors
  double step_spread = 0.005;  ///< and of single steps
  /// Whether who reads what another block has asked for waits until it has come.
  bool waits_for_others = false;
  double steps = 4e6;  ///< that are simulated at most where blocks drift, if waves are enough
  int waves = 28;      ///< of blocks that are simulated at least where blocks drift
};

/// How much of it to simulate.
struct effort {
  int domains = 0;  ///< of the device, the others are taken to be like them; 0: all
  int waves = 0;    ///< 0: all where blocks keep step, `assumptions::waves` where they drift
};

struct outcome {
  traffic all;
  std::vector<traffic> operands;  ///< reads and writes of each operand, on either side of a cache
  std::vector<traffic> domains;
  /// Reads of all operands, and what of them the near side of a cache had: what counters see.
  traffic near_reads;
  traffic last_level;       ///< empty where there is none
  double memory_bytes = 0;  ///< read from memory or written without having been there
  double far_bytes = 0;     ///< that only the other side of a domain's cache had: hits, too
  double next_bytes = 0;    ///< that the domains' caches did not have
  double seconds = 0;       ///< of the kernel
  int blocks = 0;           ///< that were simulated
  double steps = 0;         ///< of them; the other steps of the kernel are taken to be like these
  double compute_seconds = 0;  ///< of it, if all reads took no time
};

/// Simulates a kernel whose blocks go by `s`. Where blocks drift, events in the order of time: who
/// misses falls behind, who follows finds what others have fetched. Where they do not, wave after
/// wave, all blocks at the same step. Deterministic. Throws `invalid_argument` if `s` has not as
/// many blocks as the kernel.
[[nodiscard]] outcome simulate(const kernel& k, const device& d, const schedule& s,
                               const effort& much = {}, const assumptions& how = {});

}  // namespace untax::locality

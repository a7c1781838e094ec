#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include <untax/trace/record.hpp>

#include "engines/gpu/trace/decode.hpp"
#include "engines/gpu/trace/event_word.hpp"

namespace untax::gpu {

/// Kernels that are launched alike: those of the same group and launch of a run.
struct launched {
  int group = 0;
  int launch = 0;
  bool operator<(const launched& other) const {
    return std::pair(group, launch) < std::pair(other.group, other.launch);
  }
};

/// A warp's part of a kernel.
struct kernel_part {
  launched by;
  warp_role role = warp_role::none;
  std::int64_t epoch = 0;
  trace_span span;
};

/// What a ring holds, taken apart.
struct warp_events {
  int cluster = 1;  ///< blocks of a cluster of its kernels
  std::vector<kernel_part> kernels;
  std::vector<trace_span> others;
};

/// Takes a ring apart.
[[nodiscard]] warp_events read_ring(const kernel_record& record, const warp_ring& ring);

/// A tile is multiplied from when its first part has come, and a producer or a poller may have to
/// wait for more of it: then the multipliers of its block wait, too, though they do not note it;
/// and those of its cluster, since each block brings a part of the operand that all of them read.
/// Of the waits that end within a tile the longest one is theirs, for as long as the tile took
/// longer than as a rule: what the producer is ahead hides short ones.
void share_waits(const std::vector<warp_ring>& rings, std::vector<warp_events>& warps);

}  // namespace untax::gpu

#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include <untax/trace/record.hpp>

#include "engines/gpu/trace/decode.hpp"
#include "engines/gpu/trace/event_word.hpp"

namespace untax::gpu {

/// Kernels with the same group and the same launch in a run.
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

/// The decoded events of a ring.
struct warp_events {
  int cluster = 1;  ///< blocks per cluster of its kernels
  std::vector<kernel_part> kernels;
  std::vector<trace_span> others;
};

/// Decodes a ring.
[[nodiscard]] warp_events read_ring(const kernel_record& record, const warp_ring& ring);

/// Adds waits to multipliers. A tile is multiplied from the arrival of its first k-block on, while
/// a producer or a poller may wait for more of it. Then the multipliers of its block wait too, but
/// do not record it. So do those of the other blocks of its cluster, since each block loads a part
/// of the operand that all of them read. Each multiplier gets the longest wait that ends within a
/// tile, for as long as the tile exceeds the median time: the producer's lead hides short waits.
void share_waits(const std::vector<warp_ring>& rings, std::vector<warp_events>& warps);

}  // namespace untax::gpu

#pragma once

#include <cstdint>

namespace untax::gpu {

/// The content that a plan relies on when it takes a room over from another plan.
enum class room_content : std::uint64_t {
  /// None: peers write only after this rank has opened the room in the same run, and so after all
  /// its earlier kernels have ended.
  opened = 1,
  /// None: counters of the plan's own tell which data have arrived, and which were read in its own
  /// earlier runs.
  counted,
  /// Zeros, which the plan itself leaves behind (peer_slabs.hpp).
  words,
  /// Zeros. The plan leaves packets behind (packets/layout.hpp).
  packets,
};

}  // namespace untax::gpu

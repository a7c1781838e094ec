#pragma once

#include <cstdint>

namespace untax::gpu {

/// What a plan relies on when it takes a room over from another plan.
enum class room_content : std::uint64_t {
  /// Nothing: peers write only after this rank has opened the room in the same run, and so after
  /// all its earlier kernels have ended.
  opened = 1,
  /// Nothing of the content. Counters of the plan's own say what has arrived, and what has been
  /// read in its own earlier runs.
  counted,
  /// All is zero. The plan itself leaves zeros behind (peer_slabs.hpp).
  words,
  /// All is zero. The plan leaves packets behind (packets/layout.hpp).
  packets,
};

}  // namespace untax::gpu

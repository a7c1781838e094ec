#pragma once

#include "engines/gpu/trace/decode.hpp"

namespace untax::gpu {

/// The clock of a GPU against that of its host. It is read when a trace first asks for it and again
/// when one ends, so that the line through both takes the drift of the two out of it. All ranks
/// that share the GPU have the same line, so times of theirs compare exactly. Throws `internal`.
///
/// The offset is that of the middle of a launch and its wait, the quickest of 16: within a few
/// microseconds of the truth. All GPUs of a host err to the same side, so between two of them it is
/// within a microsecond.
[[nodiscard]] clock_line read_clock(int device);

}  // namespace untax::gpu

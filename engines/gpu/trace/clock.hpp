#pragma once

#include "engines/gpu/trace/decode.hpp"

namespace untax::gpu {

/// The clock of a GPU relative to that of its host. It is read when a trace first needs it and
/// again when one ends: the line through both readings cancels the drift of the clocks. All ranks
/// that share the GPU have the same line, so their times compare exactly. Throws `internal`.
///
/// The offset belongs to the middle of a launch and its wait, the quickest of 16, and is exact to a
/// few microseconds. The errors of all GPUs of a host have the same sign, so the error between two
/// GPUs is below a microsecond.
[[nodiscard]] clock_line read_clock(int device);

}  // namespace untax::gpu

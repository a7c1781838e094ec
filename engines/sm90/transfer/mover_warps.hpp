#pragma once

namespace untax::sm90 {

/// Warps of a block that drive its copy engine, each a mover of its own with memory for two
/// portions: while one waits until what it sent has arrived, so that it can say so, others send.
inline constexpr int mover_warps = 3;

}  // namespace untax::sm90

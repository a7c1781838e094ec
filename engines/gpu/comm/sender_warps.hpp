#pragma once

namespace untax::gpu {

/// Warps of a block that issues TMA copies, each a sender of its own with memory for two
/// portions: while one waits until what it sent has arrived, so that it can say so, others send.
inline constexpr int sender_warps = 3;

}  // namespace untax::gpu

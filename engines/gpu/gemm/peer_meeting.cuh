#pragma once

#include <cstdint>
#include <limits>

#include "engines/gpu/sm90/ptx/barrier.cuh"

namespace untax::gpu {

/// The barriers of a block for its exchange of partial results with peers.
struct peer_meeting {
  stage_barrier sent;    ///< epilogue warps -> the fourth warp: all stores to peers are complete
  stage_barrier landed;  ///< the fourth warp -> consumers: peers have stored everything here
  stage_barrier stored;  ///< epilogue warps -> consumers: own partials are in the own slab
  int first_sum[2];      ///< per MMA warpgroup: its first work that is stored as sums
  static constexpr int no_sums = std::numeric_limits<int>::max();
  std::uint32_t failed;  ///< an epilogue warp stored nothing: a peer did not open its memory

  /// One thread must call this before any other use.
  __device__ void init(std::uint32_t epilogue_warps) {
    sent.init(epilogue_warps);
    landed.init(1);
    stored.init(epilogue_warps);
    first_sum[0] = first_sum[1] = no_sums;
    failed = 0;
  }
};

}  // namespace untax::gpu

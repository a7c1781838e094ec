#pragma once

#include <cstdint>
#include <limits>

#include "engines/gpu/sm90/ptx/barrier.cuh"

namespace untax::gpu {

/// How the roles of a block exchange partial results with peers while they multiply.
struct peer_meeting {
  stage_barrier sent;    ///< epilogue warps -> the fourth warp: all is stored at peers
  stage_barrier landed;  ///< the fourth warp -> consumers: so is what peers store here
  stage_barrier stored;  ///< epilogue warps -> consumers: so is what stays here
  int first_sum[2];      ///< of an MMA warpgroup: the first of its tiles that it hands over as sums
  static constexpr int no_sums = std::numeric_limits<int>::max();
  std::uint32_t failed;  ///< an epilogue warp has not stored, since a peer had not opened its C

  /// By one thread, before anybody else uses it.
  __device__ void init(std::uint32_t epilogue_warps) {
    sent.init(epilogue_warps);
    landed.init(1);
    stored.init(epilogue_warps);
    first_sum[0] = first_sum[1] = no_sums;
    failed = 0;
  }
};

}  // namespace untax::gpu

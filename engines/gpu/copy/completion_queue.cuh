#pragma once

#include <cstdint>

#include <untax/rma/device_group.cuh>

#include "engines/gpu/sm90/ptx/barrier.cuh"

namespace untax::gpu {

/// A queue in shared memory: the thread that sends adds transfers that have arrived, and another
/// warp of its block publishes them. A release takes longer than the transfers that it covers. So
/// the sender does not wait for it, and one release covers all arrivals since the last.
class completion_queue {
 public:
  /// One thread calls this before the block synchronises.
  __device__ void init() {
    for (int i = 0; i < depth; ++i) {
      arrived_[i].init(1);
      told_[i].init(1);
    }
    end_ = never;
  }

  /// Sender: transfer i, of 0, 1, 2, ..., has arrived. Waits while the queue is full.
  __device__ void add(int i) {
    told_[i % depth].wait(parity_of(i) ^ 1);
    arrived_[i % depth].arrive();
  }
  /// Sender: transfer i, which is the next one, and all later ones will not arrive.
  __device__ void abandon(int i) {
    end_ = i;
    add(i);
  }

  /// Publishing warp, for `count` transfers: calls `tell(first, n)` for up to `most` consecutive
  /// transfers that have arrived. A release by a lane in `tell` covers them.
  template <class Tell>
  __device__ void each(int count, int most, const Tell& tell) {
    const int lane = device_warp::thread_rank();
    for (int first = 0; first < count;) {
      arrived_[first % depth].wait(parity_of(first));
      const int i = first + 1 + lane;
      const bool there =
          i < count && lane + 1 < most && arrived_[i % depth].has_ended(parity_of(i));
      const unsigned missing = ~__ballot_sync(0xffffffffU, there);
      const int arrived = missing == 0 ? 32 : __ffs(static_cast<int>(missing));
      __syncwarp();
      // Transfers before the end are published all the same: the sender may be waiting for that.
      // Lane 0 reads `end_` for all lanes.
      const int left = __shfl_sync(0xffffffffU, end_, 0) - first;
      const int n = left < arrived ? left : arrived;
      if (n == 0) return;
      tell(first, n);
      if (lane < n) told_[(first + lane) % depth].arrive();
      first += n;
    }
  }

 private:
  /// The maximum number of unpublished transfers. The sender waits when it is reached.
  static constexpr int depth = 64;
  static constexpr int never = 0x7fffffff;

  [[nodiscard]] __device__ static std::uint32_t parity_of(int i) {
    return static_cast<std::uint32_t>(i / depth % 2);
  }

  stage_barrier arrived_[depth];
  stage_barrier told_[depth];
  int end_;  ///< number of the first transfer that will not arrive
};

}  // namespace untax::gpu

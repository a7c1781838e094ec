#pragma once

#include <cstdint>

#include <untax/rma/device_group.cuh>

#include "engines/gpu/sm90/ptx/barrier.cuh"

namespace untax::gpu {

/// In shared memory: how the thread that sends lets a warp of its block tell others what has
/// arrived there. A release takes longer than sending what it covers does, so it is not the sender
/// who waits for it, and one covers all that has arrived since the last one.
class completion_queue {
 public:
  /// By one thread, before the block is synchronised.
  __device__ void init() {
    for (int i = 0; i < depth; ++i) {
      arrived_[i].init(1);
      told_[i].init(1);
    }
    end_ = never;
  }

  /// By the sender: number i, of 0, 1, 2, ..., has arrived.
  __device__ void add(int i) {
    told_[i % depth].wait(parity_of(i) ^ 1);
    arrived_[i % depth].arrive();
  }
  /// By the sender: number i, which comes next, will not arrive, nor those after it.
  __device__ void abandon(int i) {
    end_ = i;
    add(i);
  }

  /// By the warp, for numbers below `count`: calls `tell(first, n)` with up to `most` neighbours
  /// that have arrived. What a lane releases there covers them.
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
      // What arrived before the end is told all the same: the sender may be waiting for that. All
      // lanes go by one look.
      const int left = __shfl_sync(0xffffffffU, end_, 0) - first;
      const int n = left < arrived ? left : arrived;
      if (n == 0) return;
      tell(first, n);
      if (lane < n) told_[(first + lane) % depth].arrive();
      first += n;
    }
  }

 private:
  /// As many as may wait to be told before the sender has to.
  static constexpr int depth = 64;
  static constexpr int never = 0x7fffffff;

  [[nodiscard]] __device__ static std::uint32_t parity_of(int i) {
    return static_cast<std::uint32_t>(i / depth % 2);
  }

  stage_barrier arrived_[depth];
  stage_barrier told_[depth];
  int end_;  ///< what will not arrive, from this number on
};

}  // namespace untax::gpu

#pragma once

#include <cstdint>

namespace untax::gpu {

/// Two queues of positions, which blocks take when they become free. Positions below `second`
/// belong to queue 0, all other positions to queue 1. When a queue is empty, its multiprocessors
/// take from the other queue, so none is idle for long.
struct sm_queues {
  const std::uint8_t* queue_of_sm = nullptr;  ///< by %smid, on the device; null: there is one queue
  int second = 0;                             ///< `count` if there is one queue
  int count = 0;
  int* taken = nullptr;  ///< [2], on the device: number of attempts to take from each queue
};

#if defined(__CUDACC__)

/// The number of the multiprocessor that runs the caller.
[[nodiscard]] __device__ inline unsigned this_sm() {
  unsigned sm = 0;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  return sm;
}

/// Takes positions for a block. Used by one of its threads.
class sm_queue_cursor {
 public:
  __device__ explicit sm_queue_cursor(const sm_queues& queues) : queues_(queues) {
    if (queues.queue_of_sm != nullptr) queue_ = queues.queue_of_sm[this_sm()];
  }

  /// Takes a position, which no other block gets. Returns -1 if none is left.
  [[nodiscard]] __device__ int next() {
    for (;;) {
      const int begin = queue_ == 0 ? 0 : queues_.second;
      const int end = queue_ == 0 ? queues_.second : queues_.count;
      const int position = begin + atomicAdd(queues_.taken + queue_, 1);
      if (position < end) return position;
      if (queues_.queue_of_sm == nullptr || helps_) return -1;
      helps_ = true;
      queue_ ^= 1;
    }
  }

 private:
  const sm_queues& queues_;
  int queue_ = 0;
  bool helps_ = false;  // takes from the other queue
};

#endif

}  // namespace untax::gpu

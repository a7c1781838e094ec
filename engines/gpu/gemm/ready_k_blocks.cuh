#pragma once

#include <cstdint>

#include <untax/memory/block_counters.cuh>

#include "engines/gpu/gemm/bounded_watch.cuh"

namespace untax::gpu {

/// In shared memory: how many k-blocks of A have come, of all that a block reads, in the order in
/// which it does. One warp counts, the producer looks.
class ready_k_blocks {
 public:
  /// By one thread, before the block is synchronised.
  __device__ void init() { count_ = 0; }

  /// By one thread. A release.
  __device__ void raise(int count) {
    block_counters::raise_release(count_, static_cast<std::uint64_t>(count));
  }
  /// By all lanes of a warp, of which the first one acquires for itself.
  [[nodiscard]] __device__ int count() const {
    const auto seen = static_cast<int>(block_counters::load_acquire(count_));
    return __shfl_sync(0xffffffffU, seen, 0);
  }
  /// Waits until there are so many, or until it has looked `looks` times.
  __device__ void await(int count, poll_count looks = bounded_watch::no_bound) const {
    bounded_watch watch{looks};
    const wait_site site{.expected = static_cast<std::uint64_t>(count)};
    (void)wait_until<block_counters>(const_cast<std::uint64_t&>(count_), site, watch);
  }

 private:
  std::uint64_t count_;
};

}  // namespace untax::gpu

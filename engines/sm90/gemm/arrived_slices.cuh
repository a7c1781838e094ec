#pragma once

#include <cstdint>

#include <cuda/atomic>

#include <untax/flow/wait.hpp>
#include <untax/memory/cuda_memory.cuh>

namespace untax::sm90 {

/// Counters between the warps of a block, in its shared memory: whoever looks sees them at once.
struct block_counters : cuda_memory {
  __device__ static std::uint64_t load_acquire(const counter& c) noexcept {
    return ref(c).load(cuda::memory_order_acquire);
  }
  __device__ static void raise_release(counter& c, std::uint64_t value) noexcept {
    ref(c).store(value, cuda::memory_order_release);
  }
  __device__ static void pause(poll_count /*polls*/) noexcept {}

 private:
  __device__ static cuda::atomic_ref<std::uint64_t, cuda::thread_scope_block> ref(
      const counter& c) noexcept {
    return cuda::atomic_ref<std::uint64_t, cuda::thread_scope_block>(const_cast<counter&>(c));
  }
};

/// Of a wait for what comes in any case: from a role of the same block, or from blocks of the same
/// launch that have started before. It may look a number of times only.
struct bounded_watch {
  poll_count most = ~poll_count{0};

  [[nodiscard]] __device__ bool due(poll_count polls) const { return polls >= most; }
  [[nodiscard]] __device__ wait_outcome look(const wait_site& /*site*/,
                                             std::uint64_t /*seen*/) const {
    return most == ~poll_count{0} ? wait_outcome::ok : wait_outcome::timeout;
  }
  __device__ void leave() const {}
};

/// In shared memory: how many slices of A have come, of all that a block reads, in the order in
/// which it does. One warp counts, the loader looks.
class arrived_slices {
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
  __device__ void await(int count, poll_count looks = ~poll_count{0}) const {
    bounded_watch watch{looks};
    const wait_site site{.expected = static_cast<std::uint64_t>(count)};
    (void)wait_until<block_counters>(const_cast<std::uint64_t&>(count_), site, watch);
  }

 private:
  std::uint64_t count_;
};

}  // namespace untax::sm90

#pragma once

#include <cstdint>

#include <untax/flow/wait.hpp>
#include <untax/memory/block_counters.cuh>

namespace untax::gpu {

/// The watch of a wait that cannot fail: for a role of the same block, or for blocks of the same
/// launch that started earlier. So it names no suspect. After `most` polls it returns `timeout`.
struct bounded_watch {
  static constexpr poll_count no_bound = ~poll_count{0};

  poll_count most = no_bound;

  [[nodiscard]] __device__ bool due(poll_count polls) const { return polls >= most; }
  [[nodiscard]] __device__ wait_outcome look(const wait_site& /*site*/,
                                             std::uint64_t /*seen*/) const {
    return most == no_bound ? wait_outcome::ok : wait_outcome::timeout;
  }
  __device__ void leave() const {}
};

/// In shared memory: how many k-blocks of A have arrived, of all that a block loads, in the order
/// in which it loads them. The flag poller raises the count, and the producer reads it.
class ready_k_blocks {
 public:
  /// One thread must call this before the block is synchronised.
  __device__ void init() { count_ = 0; }

  /// Raises the count, by one thread. Release.
  __device__ void raise(int count) {
    block_counters::raise_release(count_, static_cast<std::uint64_t>(count));
  }
  /// All lanes of a warp must call this. Returns the count of lane 0, acquired by that lane only.
  [[nodiscard]] __device__ int count() const {
    const auto seen = static_cast<int>(block_counters::load_acquire(count_));
    return __shfl_sync(0xffffffffU, seen, 0);
  }
  /// Waits until the count is at least `count`, or for `polls` polls.
  __device__ void await(int count, poll_count polls = bounded_watch::no_bound) const {
    bounded_watch watch{polls};
    const wait_site site{.expected = static_cast<std::uint64_t>(count)};
    (void)wait_until<block_counters>(const_cast<std::uint64_t&>(count_), site, watch);
  }

 private:
  std::uint64_t count_;
};

}  // namespace untax::gpu

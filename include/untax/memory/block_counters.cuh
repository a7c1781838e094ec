#pragma once

#include <cstdint>

#include <cuda/atomic>

#include <untax/memory/cuda_memory.cuh>

namespace untax {

/// The memory policy of counters between the warps of a block, in its shared memory. Acquire and
/// release have the scope of the block; they also pass on data that its warps have acquired from
/// other ranks. For kernels only.
struct block_counters : cuda_memory {
  /// The load is ld.acquire.cta.
  __device__ static std::uint64_t load_acquire(const counter& c) noexcept {
    return ref(c).load(cuda::memory_order_acquire);
  }
  /// The store is st.release.cta. A store is enough, since one thread raises a counter, to rising
  /// values.
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

static_assert(memory_policy<block_counters>);

}  // namespace untax

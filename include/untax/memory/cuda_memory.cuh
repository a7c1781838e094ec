#pragma once

#include <cstdint>

#include <cuda/atomic>

#include <untax/memory/policy.hpp>

namespace untax {

/// The memory policy of ranks that are GPUs and reach each other's memory. Order comes from the PTX
/// memory model at system scope, on the operation on the counter itself. For kernels only.
struct cuda_memory {
  using counter = std::uint64_t;
  template <class T>
  using cell = T;

  /// The load is ld.acquire.sys.
  __device__ static std::uint64_t load_acquire(const counter& c) noexcept {
    return ref(c).load(cuda::memory_order_acquire);
  }

  /// red.release.sys.max is one operation without a result, so no thread waits for an answer.
  __device__ static void raise_release(counter& c, std::uint64_t value) noexcept {
    asm volatile("red.release.sys.global.max.u64 [%0], %1;"
                 :
                 : "l"(__cvta_generic_to_global(&c)), "l"(value)
                 : "memory");
  }

  /// red.release.sys.add serves counters that several writers raise.
  __device__ static void add_release(counter& c, std::uint64_t amount) noexcept {
    asm volatile("red.release.sys.global.add.u64 [%0], %1;"
                 :
                 : "l"(__cvta_generic_to_global(&c)), "l"(amount)
                 : "memory");
  }

  /// Does nothing for the first 512 polls, since a poll itself takes long. A longer wait sleeps,
  /// which leaves the issue slots of its multiprocessor to other warps.
  __device__ static void pause(poll_count polls) noexcept {
    if (polls >= 512) __nanosleep(polls < 4096 ? 100 : 400);
  }

  /// Nanoseconds of %globaltimer. All multiprocessors have the same clock; it is not that of the
  /// host.
  __device__ static std::uint64_t now() noexcept {
    std::uint64_t nanoseconds = 0;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(nanoseconds));
    return nanoseconds;
  }

  __device__ static cuda::atomic_ref<std::uint64_t, cuda::thread_scope_system> ref(
      const counter& c) noexcept {
    return cuda::atomic_ref<std::uint64_t, cuda::thread_scope_system>(const_cast<counter&>(c));
  }
};

static_assert(memory_policy<cuda_memory>);

}  // namespace untax

#pragma once

#include <cstdint>

#include <cuda/ptx>

namespace untax::gpu {

/// An mbarrier with which the roles of a block, or of the blocks of a cluster, pass stages of
/// shared memory to each other. Its phases alternate: even, odd, even, ...
struct stage_barrier {
  std::uint64_t word;

  /// One thread must call this before any other use. A phase ends after `arrivals` arrivals.
  __device__ void init(std::uint32_t arrivals) { cuda::ptx::mbarrier_init(&word, arrivals); }

  /// Returns when the phase of that parity has ended. Acquires what arriving threads released.
  __device__ void wait(std::uint32_t parity) {
    // This is not a wait for a peer: other roles of this kernel arrive, or TMA does.
    while (!cuda::ptx::mbarrier_try_wait_parity(&word, parity)) {
    }
  }

  /// As `wait`, but acquires what other blocks of the cluster have stored.
  __device__ void wait_for_cluster(std::uint32_t parity) {
    while (!cuda::ptx::mbarrier_try_wait_parity(cuda::ptx::sem_acquire, cuda::ptx::scope_cluster,
                                                &word, parity)) {
    }
  }

  /// Whether the phase of that parity has ended. If so, acquires like `wait`.
  [[nodiscard]] __device__ bool has_ended(std::uint32_t parity) {
    return cuda::ptx::mbarrier_test_wait_parity(&word, parity);
  }

  __device__ void arrive() {
    (void)cuda::ptx::mbarrier_arrive(cuda::ptx::sem_release, cuda::ptx::scope_cta,
                                     cuda::ptx::space_shared, &word);
  }

  /// Arrives, and makes the phase wait for `bytes` of TMA, too.
  __device__ void arrive_and_expect(std::uint32_t bytes) {
    (void)cuda::ptx::mbarrier_arrive_expect_tx(cuda::ptx::sem_release, cuda::ptx::scope_cta,
                                               cuda::ptx::space_shared, &word, bytes);
  }

  /// Arrives at this barrier in another block of the cluster, to signal that the tensor cores have
  /// read a stage. Orders none of this thread's own writes: a release for the whole cluster would
  /// take most of a microsecond.
  __device__ void arrive_at(std::uint32_t block) {
    const auto own = static_cast<std::uint32_t>(__cvta_generic_to_shared(&word));
    asm volatile(
        "{\n"
        ".reg .b32 there;\n"
        "mapa.shared::cluster.u32 there, %0, %1;\n"
        "mbarrier.arrive.shared::cluster.b64 _, [there];\n"
        "}\n"
        :
        : "r"(own), "r"(block)
        : "memory");
  }
};

/// A position in a ring of stages, and the parity of the phase for which the ring's consumer waits.
/// The producer waits for the other parity, so that a new ring is empty.
struct ring_cursor {
  std::uint32_t stage = 0;
  std::uint32_t parity = 0;

  template <int stages>
  __device__ void advance() {
    if (++stage == stages) {
      stage = 0;
      parity ^= 1;
    }
  }
};

}  // namespace untax::gpu

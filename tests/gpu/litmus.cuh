#pragma once

#include <atomic>
#include <cstdint>

#include <untax/flow/channel.hpp>
#include <untax/world/device_world.cuh>
#include <untax/world/launch.hpp>

#include "gpus.hpp"

// The shapes of tests/litmus between GPUs, with random delays. Whether the hardware shows that a
// mutant is wrong is up to the hardware; where it does not, the PTX gate (tests/style/ptx.py) is
// what catches it.

namespace gpu_test {

/// Ways to make the policy too weak.
enum class weakening {
  none,
  relaxed_raise,  ///< raising publishes nothing
  relaxed_load,   ///< seeing a counter makes nothing visible
  plain_raise,    ///< a store, with which a late signal lowers a counter
};

template <weakening W>
struct weak_memory : untax::cuda_memory {
  __device__ static std::uint64_t load_acquire(const counter& c) {
    return ref(c).load(W == weakening::relaxed_load ? cuda::memory_order_relaxed
                                                    : cuda::memory_order_acquire);
  }
  __device__ static void raise_release(counter& c, std::uint64_t value) {
    if constexpr (W == weakening::plain_raise) {
      ref(c).store(value, cuda::memory_order_release);
    } else if constexpr (W == weakening::relaxed_raise) {
      ref(c).fetch_max(value, cuda::memory_order_relaxed);
    } else {
      untax::cuda_memory::raise_release(c, value);
    }
  }
};

/// Up to 2 us at every third place.
__device__ inline void delay(int rank, std::uint64_t epoch, int place) {
  auto lot = static_cast<std::uint32_t>(epoch * 2654435761U + rank * 977 + place * 131071);
  lot = (lot ^ (lot >> 13U)) * 1274126177U;
  if (lot % 3 == 0) __nanosleep((lot >> 8U) % 2000);
}

/// The symmetric memory of a litmus test.
struct litmus_memory {
  untax::symmetric<std::uint64_t> counters;  ///< each in a line of its own
  untax::symmetric<std::uint32_t> payload;
  untax::symmetric<std::uint32_t> outbox;
  untax::symmetric<unsigned> wrong;

  static constexpr int line = 16;
  static constexpr int words = 8192;  ///< of a room
  [[nodiscard]] __device__ std::uint64_t& counter(int rank, int index) const {
    return *counters.at(rank, static_cast<std::size_t>(index * line));
  }
};

/// Calls `launch(world, memory, stream)` at `ranks` ranks and returns how many words were wrong.
template <class Launch>
unsigned run_litmus(int ranks, const Launch& launch) {
  std::atomic<unsigned> wrong = 0;
  untax::run_gpus(
      ranks,
      [&](untax::world& w) {
        const stream s;
        const litmus_memory memory{
            w.allocate_cleared<std::uint64_t>(8 * litmus_memory::line, "counters"),
            w.allocate_cleared<std::uint32_t>(2 * litmus_memory::words, "payload"),
            w.allocate_cleared<std::uint32_t>(litmus_memory::words, "outbox"),
            w.allocate_cleared<unsigned>(1, "wrong")};
        w.barrier();
        launch(untax::device_world(w.device_state()), memory, s.get());
        ok(cudaGetLastError());
        EXPECT_TRUE(s.done());
        w.check();
        wrong += values(memory.wrong.local(), 1, s)[0];
        w.barrier();
      },
      gpu_world());
  return wrong;
}

/// Loads a kernel on the GPUs before one of them waits for another.
template <class Kernel>
void preload(Kernel* kernel, int ranks) {
  for (int rank = 0; rank < ranks; ++rank) {
    ok(cudaSetDevice(rank));
    cudaFuncAttributes attributes;
    ok(cudaFuncGetAttributes(&attributes, kernel));
  }
}

}  // namespace gpu_test

// Shapes with three ranks, and what is and is not promised of single counters.
#include <array>

#include "litmus.cuh"

namespace {

using namespace gpu_test;
using untax::cuda_memory;

constexpr std::uint64_t epochs = 20000;

__device__ std::uint32_t value_of(std::uint64_t epoch, int i) {
  return static_cast<std::uint32_t>(epoch * 69069U) + static_cast<std::uint32_t>(i);
}

/// ISA2: rank 0 writes at rank 2 and tells rank 1, which tells rank 2.
__global__ void __launch_bounds__(128) isa2(untax::device_world world, litmus_memory memory) {
  constexpr int words = 1024;
  auto block = world.block();
  const int rank = block.rank();
  for (std::uint64_t epoch = 1; epoch <= epochs; ++epoch) {
    if (block.thread_rank() == 0) delay(rank, epoch, 1);
    if (rank == 0) {
      if (!untax::wait_until(block, &memory.counter(0, 2), epoch - 1, {.peer = 2})) return;
      for (int i = block.thread_rank(); i < words; i += block.size())
        *memory.payload.at(2, static_cast<std::size_t>(i)) = value_of(epoch, i);
      untax::signal(block, &memory.counter(1, 0), epoch);
    } else if (rank == 1) {
      if (!untax::wait_until(block, &memory.counter(1, 0), epoch, {.peer = 0})) return;
      untax::signal(block, &memory.counter(2, 1), epoch);
    } else {
      if (!untax::wait_until(block, &memory.counter(2, 1), epoch, {.peer = 1})) return;
      for (int i = block.thread_rank(); i < words; i += block.size()) {
        if (*memory.payload.local(static_cast<std::size_t>(i)) != value_of(epoch, i))
          atomicAdd(memory.wrong.local(), 1U);
      }
      untax::signal(block, &memory.counter(0, 2), epoch);
    }
  }
}

/// WRC: rank 1 sees the cause at rank 2 and raises the effect there.
__global__ void wrc(untax::device_world world, litmus_memory memory) {
  auto self = world.thread(0);
  for (std::uint64_t epoch = 1; epoch <= epochs; ++epoch) {
    delay(self.rank(), epoch, 2);
    std::uint64_t& cause = memory.counter(2, 0);
    std::uint64_t& effect = memory.counter(2, 1);
    if (self.rank() == 0) {
      untax::signal(self, &cause, epoch);
    } else if (self.rank() == 1) {
      if (!untax::wait_until(self, &cause, epoch, {.peer = 0})) return;
      untax::signal(self, &effect, epoch);
    } else {
      if (!untax::wait_until(self, &effect, epoch, {.peer = 1})) return;
      if (cuda_memory::load_acquire(cause) < epoch) atomicAdd(memory.wrong.local(), 1U);
    }
  }
}

/// CoRR with an older signal that comes late: the counter is never seen to fall.
template <class M>
__global__ void late_signal(untax::device_world world, litmus_memory memory) {
  auto self = world.thread(0);
  std::uint64_t& counter = memory.counter(1, 0);
  std::uint64_t before = 0;
  for (std::uint64_t epoch = 2; epoch <= epochs; ++epoch) {
    if (self.rank() == 0) {
      M::raise_release(counter, epoch);
      M::raise_release(counter, epoch - 1);
      delay(0, epoch, 3);
    } else {
      const std::uint64_t seen = M::load_acquire(counter);
      if (seen < before) atomicAdd(memory.wrong.local(), 1U);
      before = seen;
    }
  }
}

/// SB: each rank raises its flag at the other and loads its own. The outbox has the loaded values.
__global__ void store_buffering(untax::device_world world, litmus_memory memory) {
  auto self = world.thread(0);
  const int peer = 1 - self.rank();
  for (std::uint64_t epoch = 1; epoch <= litmus_memory::words; ++epoch) {
    untax::signal(self, &memory.counter(peer, 0), epoch);
    *memory.outbox.local(epoch - 1) =
        cuda_memory::load_acquire(memory.counter(self.rank(), 0)) >= epoch ? 1 : 0;
    // Both begin the next round together.
    untax::signal(self, &memory.counter(peer, 1), epoch);
    if (!untax::wait_until(self, &memory.counter(self.rank(), 1), epoch, {.peer = peer})) return;
  }
}

template <class Kernel>
unsigned wrong_of(Kernel* kernel, int ranks, int threads) {
  preload(kernel, ranks);
  return run_litmus(ranks, [=](const auto& world, const litmus_memory& memory, cudaStream_t s) {
    kernel<<<1, threads, 0, s>>>(world, memory);
  });
}

TEST(gpu_litmus, isa2) {
  NEEDS_GPUS(3);
  NEEDS_OWN_GPUS();
  EXPECT_EQ(wrong_of(isa2, 3, 128), 0U);
}

TEST(gpu_litmus, wrc) {
  NEEDS_GPUS(3);
  NEEDS_OWN_GPUS();
  EXPECT_EQ(wrong_of(wrc, 3, 1), 0U);
}

TEST(gpu_litmus, late_signal) {
  NEEDS_GPUS(2);
  NEEDS_OWN_GPUS();
  EXPECT_EQ(wrong_of(late_signal<cuda_memory>, 2, 1), 0U);
}

TEST(gpu_litmus, a_store_lets_a_late_signal_lower_a_counter) {
  NEEDS_GPUS(2);
  NEEDS_OWN_GPUS();
  EXPECT_GT(wrong_of(late_signal<weak_memory<weakening::plain_raise>>, 2, 1), 0U);
}

// Nothing is promised here; how often both see nothing is for the curious.
TEST(gpu_litmus, store_buffering_is_allowed) {
  NEEDS_GPUS(2);
  NEEDS_OWN_GPUS();
  preload(store_buffering, 2);
  std::array<std::vector<std::uint32_t>, 2> saw;
  run_litmus(2, [&](const untax::device_world& world, const litmus_memory& memory, cudaStream_t s) {
    store_buffering<<<1, 1, 0, s>>>(world, memory);
    ok(cudaStreamSynchronize(s));
    std::vector<std::uint32_t> mine(litmus_memory::words);
    ok(cudaMemcpy(mine.data(), memory.outbox.local(), 4 * mine.size(), cudaMemcpyDefault));
    saw[static_cast<std::size_t>(world.rank())] = mine;
  });
  int both_nothing = 0;
  for (std::size_t i = 0; i < saw[0].size(); ++i)
    both_nothing += saw[0][i] + saw[1][i] == 0 ? 1 : 0;
  RecordProperty("both_saw_nothing", both_nothing);
  std::printf("          seen: both saw nothing in %d of %zu rounds\n", both_nothing,
              saw[0].size());
}

}  // namespace

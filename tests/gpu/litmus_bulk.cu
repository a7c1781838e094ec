// Message passing with TMA: the payload takes another way than the flag.
#include "litmus.cuh"

namespace {

using namespace gpu_test;

constexpr std::uint64_t epochs = 5000;
using ring = untax::bulk_ring<2, 16384>;

/// The instruction that is left out of ring.move or its surroundings.
enum class flaw { none, no_wait_group, read_wait_group, no_proxy_fence };

/// As bulk_ring::move for one piece that fits a stage, with a flaw.
template <flaw what>
__device__ void move_with_flaw(ring::memory& shared, std::byte* to, const std::byte* from,
                               std::uint32_t bytes, std::uint32_t turn) {
  namespace ptx = cuda::ptx;
  if (what != flaw::no_proxy_fence) ptx::fence_proxy_async();
  ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared,
                                 &shared.arrived[0], bytes);
  ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, shared.stage[0], from, bytes,
                     &shared.arrived[0]);
  while (!ptx::mbarrier_try_wait_parity(&shared.arrived[0], turn)) {
  }
  ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, to, shared.stage[0], bytes);
  ptx::cp_async_bulk_commit_group();
  if (what == flaw::read_wait_group) ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
  if (what == flaw::none || what == flaw::no_proxy_fence)
    ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
}

__device__ std::uint32_t value_of(std::uint64_t epoch, int i) {
  return static_cast<std::uint32_t>(epoch * 40503U) + static_cast<std::uint32_t>(i);
}

/// Rank 0 fills its outbox with ordinary stores and sends it; rank 1 looks and gives it back.
template <bool by_verb, flaw what>
__global__ void __launch_bounds__(128) exchange(untax::device_world world, litmus_memory memory) {
  __shared__ ring::memory shared;
  constexpr int words = sizeof(ring::memory::stage[0]) / 4;
  auto block = world.block();
  ring engine(block, shared);
  for (std::uint64_t epoch = 1; epoch <= epochs; ++epoch) {
    if (block.thread_rank() == 0) delay(block.rank(), epoch, 0);
    if (block.rank() == 0) {
      if (!untax::wait_until(block, &memory.counter(0, 1), epoch - 1, {.peer = 1})) return;
      for (int i = block.thread_rank(); i < words; i += block.size())
        *memory.outbox.local(static_cast<std::size_t>(i)) = value_of(epoch, i);
      if constexpr (by_verb) {
        untax::bulk_put(block, engine, memory.payload.at(1), memory.outbox.local(), words);
      } else {
        block.sync();
        if (block.thread_rank() == 0)
          move_with_flaw<what>(shared, reinterpret_cast<std::byte*>(memory.payload.at(1)),
                               reinterpret_cast<const std::byte*>(memory.outbox.local()), 4 * words,
                               static_cast<std::uint32_t>(epoch - 1) % 2);
      }
      untax::signal(block, &memory.counter(1, 0), epoch);
      // The mutants leave copies under way, which must not read the next outbox.
      if (block.thread_rank() == 0) cuda::ptx::cp_async_bulk_wait_group(cuda::ptx::n32_t<0>());
      block.sync();
    } else {
      if (!untax::wait_until(block, &memory.counter(1, 0), epoch, {.peer = 0})) return;
      unsigned wrong = 0;
      for (int i = block.thread_rank(); i < words; i += block.size())
        wrong += *memory.payload.local(static_cast<std::size_t>(i)) != value_of(epoch, i) ? 1 : 0;
      if (wrong > 0) atomicAdd(memory.wrong.local(), wrong);
      untax::signal(block, &memory.counter(0, 1), epoch);
    }
  }
}

template <bool by_verb, flaw what = flaw::none>
unsigned wrong_words() {
  preload(exchange<by_verb, what>, 2);
  return run_litmus(2, [](const auto& world, const litmus_memory& memory, cudaStream_t stream) {
    exchange<by_verb, what><<<1, 128, 0, stream>>>(world, memory);
  });
}

TEST(gpu_litmus, bulk_message_passing) {
  NEEDS_GPUS(2);
  NEEDS_OWN_GPUS();
  EXPECT_EQ(wrong_words<true>(), 0U);
  EXPECT_EQ(wrong_words<false>(), 0U);
}

// These go well on H200: its release waits for TMA, too. That is nowhere promised, and
// the PTX gate insists on the instructions.
TEST(gpu_litmus, weaker_bulk_copies_may_be_overtaken) {
  NEEDS_GPUS(2);
  NEEDS_OWN_GPUS();
  const unsigned none = wrong_words<false, flaw::no_wait_group>();
  const unsigned read = wrong_words<false, flaw::read_wait_group>();
  const unsigned proxy = wrong_words<false, flaw::no_proxy_fence>();
  RecordProperty("no_wait_group", static_cast<int>(none));
  RecordProperty("wait_group_read", static_cast<int>(read));
  RecordProperty("no_proxy_fence", static_cast<int>(proxy));
  std::printf(
      "          seen: no wait_group %u, wait_group.read %u, no proxy fence %u wrong words\n", none,
      read, proxy);
}

}  // namespace

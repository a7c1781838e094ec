// Message passing, credit return and epoch reuse: a channel of the library between two GPUs, with
// payload by ordinary stores.
#include "litmus.cuh"

namespace {

using namespace gpu_test;
using untax::room;
using untax::wait_outcome;

constexpr std::uint64_t epochs = 20000;

enum class without { nothing, reserve };

struct table {
  litmus_memory memory;
  [[nodiscard]] __device__ std::uint64_t& at(int rank, int index) const {
    return memory.counter(rank, index);
  }
};

template <int sets>
__device__ room room_of(std::uint64_t epoch) {
  const untax::room_sets sets_of_rooms{sets};
  const int set = sets_of_rooms.set_of(epoch);
  return {.producer = 0,
          .consumer = 1,
          .number = set,
          .ready = set,
          .free = sets + set,
          .use = sets_of_rooms.use_of(epoch)};
}

__device__ std::uint32_t value_of(std::uint64_t epoch, int i) {
  return static_cast<std::uint32_t>(epoch * 2654435761U) + static_cast<std::uint32_t>(i);
}

template <class M, int sets, without missing>
__global__ void __launch_bounds__(256) exchange(untax::device_world world, litmus_memory memory) {
  auto block = world.block();
  const bool leads = block.thread_rank() == 0;
  untax::channel<M, table, untax::device_watch> channel("litmus", {memory}, block.guard());
  for (std::uint64_t epoch = 1; epoch <= epochs; ++epoch) {
    const room r = room_of<sets>(epoch);
    const auto begin = static_cast<std::size_t>(r.number) * litmus_memory::words;
    wait_outcome outcome = wait_outcome::ok;
    if (leads) delay(block.rank(), epoch, 0);
    if (block.rank() == 0) {
      if (leads && missing != without::reserve) outcome = channel.reserve(r);
      if (untax::detail::agreed(block, outcome) != wait_outcome::ok) return;
      std::uint32_t* to = memory.payload.at(1, begin);
      for (int i = block.thread_rank(); i < litmus_memory::words; i += block.size())
        to[i] = value_of(epoch, i);
      block.sync();
      if (leads) channel.publish(r);
    } else {
      if (leads) outcome = channel.acquire(r);
      if (untax::detail::agreed(block, outcome) != wait_outcome::ok) return;
      const std::uint32_t* from = memory.payload.local(begin);
      unsigned wrong = 0;
      for (int i = block.thread_rank(); i < litmus_memory::words; i += block.size())
        wrong += from[i] != value_of(epoch, i) ? 1 : 0;
      if (wrong > 0) atomicAdd(memory.wrong.local(), wrong);
      block.sync();
      if (leads) channel.retire(r, 0);
    }
  }
}

template <class M, int sets, without missing = without::nothing>
unsigned wrong_words() {
  preload(exchange<M, sets, missing>, 2);
  return run_litmus(2, [](const auto& world, const litmus_memory& memory, cudaStream_t stream) {
    exchange<M, sets, missing><<<1, 256, 0, stream>>>(world, memory);
  });
}

TEST(gpu_litmus, credit_return) {
  NEEDS_GPUS(2);
  NEEDS_OWN_GPUS();
  EXPECT_EQ((wrong_words<untax::cuda_memory, 1>()), 0U);
}

TEST(gpu_litmus, epoch_reuse) {
  NEEDS_GPUS(2);
  NEEDS_OWN_GPUS();
  EXPECT_EQ((wrong_words<untax::cuda_memory, 2>()), 0U);
}

// A producer that does not wait for its room writes into what is being read.
TEST(gpu_litmus, a_room_that_is_not_reserved_is_overwritten) {
  NEEDS_GPUS(2);
  NEEDS_OWN_GPUS();
  EXPECT_GT((wrong_words<untax::cuda_memory, 2, without::reserve>()), 0U);
}

// Bytes that the last use read are still in the L1 cache.
TEST(gpu_litmus, a_relaxed_load_reads_old_bytes) {
  NEEDS_GPUS(2);
  NEEDS_OWN_GPUS();
  NEEDS_NO_TOOL("it expects a race, which the tool's own loads and delays may hide");
  EXPECT_GT((wrong_words<weak_memory<weakening::relaxed_load>, 1>()), 0U);
}

// The flag may overtake the bytes; on some links it never does.
TEST(gpu_litmus, a_relaxed_raise_may_overtake_the_bytes) {
  NEEDS_GPUS(2);
  NEEDS_OWN_GPUS();
  const unsigned wrong = wrong_words<weak_memory<weakening::relaxed_raise>, 1>();
  RecordProperty("wrong_words", static_cast<int>(wrong));
  std::printf("          seen: %u wrong words\n", wrong);
}

}  // namespace

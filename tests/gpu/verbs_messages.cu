// Signals, packets, atomics and the barrier of kernels, between all GPUs there are.
#include <algorithm>
#include <cstdint>
#include <functional>

#include <untax/world/device_world.cuh>
#include <untax/world/launch.hpp>

#include "gpus.hpp"

namespace {

using namespace gpu_test;
using untax::device_world;
using untax::symmetric;
using untax::world;

/// Calls `body` at up to four ranks.
void at_ranks(int least, const std::function<void(world&, const stream&)>& body) {
  untax::run_gpus(
      std::max(least, std::min(gpus(), 4)),
      [&](world& w) {
        const stream s;
        body(w, s);
        w.check();
        w.barrier();
      },
      gpu_world());
}

template <class T>
__device__ T element(int rank, int count, int i) {
  return static_cast<T>(1000003 * (rank + 1) + 7919 * count + i);
}

/// Messages of every length up to `most` around the ring, by packets; two sets of packets in turn,
/// so that the message from behind says that the one before the last was read.
template <class T, class Group>
__device__ void send_around(Group& group, symmetric<untax::packet> packets, symmetric<T> inbox,
                            symmetric<T> outbox, int most, unsigned* wrong) {
  const int next = (group.rank() + 1) % group.ranks();
  const int before = (group.rank() + group.ranks() - 1) % group.ranks();
  for (int count = 1; count <= most; ++count) {
    const std::size_t set = static_cast<std::size_t>(count % 2) * (packets.size() / 2);
    for (int i = group.thread_rank(); i < count; i += group.size())
      *outbox.local(static_cast<std::size_t>(i)) = element<T>(group.rank(), count, i);
    group.sync();
    untax::send_packets(group, packets.at(next, set), outbox.local(), count,
                        static_cast<std::uint64_t>(count));
    if (untax::receive_packets(group, inbox.local(), packets.local(set), count,
                               static_cast<std::uint64_t>(count),
                               {.name = "around", .peer = before}) != untax::wait_outcome::ok)
      return;
    for (int i = group.thread_rank(); i < count; i += group.size()) {
      if (*inbox.local(static_cast<std::size_t>(i)) != element<T>(before, count, i))
        atomicAdd(wrong, 1U);
    }
    group.sync();
  }
}

template <class T>
__global__ void packets_around(device_world w, symmetric<untax::packet> packets, symmetric<T> inbox,
                               symmetric<T> outbox, int most, unsigned* wrong) {
  if (blockDim.x == 1) {
    auto thread = w.thread(0);
    send_around(thread, packets, inbox, outbox, most, wrong);
  } else {
    auto block = w.block();
    send_around(block, packets, inbox, outbox, most, wrong);
  }
}

template <class T>
void packets_of(world& w, const stream& s) {
  // Two ranks, since around a longer ring nothing comes back from the next one.
  constexpr int most = 700;
  const auto packets = w.allocate_cleared<untax::packet>(2 * most, "packets");
  const auto inbox = w.allocate_cleared<T>(most, "inbox");
  const auto outbox = w.allocate_cleared<T>(most, "outbox");
  const auto wrong = w.allocate_cleared<unsigned>(1, "wrong");
  cudaFuncAttributes attributes;
  ok(cudaFuncGetAttributes(&attributes, packets_around<T>));
  w.barrier();
  packets_around<T><<<1, 128, 0, s.get()>>>(device_world(w.device_state()), packets, inbox, outbox,
                                            most, wrong.local());
  EXPECT_TRUE(s.done());
  w.check();
  EXPECT_EQ(values(wrong.local(), 1, s)[0], 0U) << sizeof(T) << " bytes each";
}

TEST(gpu_verbs, packets_arrive_whole) {
  NEEDS_GPUS(2);
  untax::run_gpus(
      2,
      [](world& w) {
        const stream s;
        packets_of<std::uint8_t>(w, s);
        packets_of<std::uint16_t>(w, s);
        packets_of<float>(w, s);
        packets_of<double>(w, s);
      },
      gpu_world());
}

/// Small puts there and back, each after a plain store to the peer that it has to cover.
template <class Group>
__device__ void put_small_around(Group& group, symmetric<untax::packet> mailbox,
                                 symmetric<std::uint32_t> inbox, symmetric<std::uint32_t> outbox,
                                 symmetric<std::uint32_t> beside, unsigned* wrong) {
  const int peer = 1 - group.rank();
  const auto most = static_cast<int>(outbox.size());
  for (int round = 1; round <= 5000; ++round) {
    const int count = 1 + round % most;
    const auto value = static_cast<std::uint64_t>(round);
    const auto set = static_cast<std::size_t>(round % 2);
    for (int i = group.thread_rank(); i < count; i += group.size()) {
      *outbox.local(static_cast<std::size_t>(i)) = element<std::uint32_t>(group.rank(), round, i);
      *beside.at(peer, set * beside.size() / 2 + static_cast<std::size_t>(i)) =
          element<std::uint32_t>(group.rank() + 2, round, i);
    }
    untax::small_put_with_signal(group, mailbox.at(peer, set * mailbox.size() / 2), outbox.local(),
                                 count, value);
    if (!untax::receive_small_put(group, inbox.local(), mailbox.local(set * mailbox.size() / 2),
                                  count, value, {.name = "small put", .peer = peer}))
      return;
    for (int i = group.thread_rank(); i < count; i += group.size()) {
      const auto at = static_cast<std::size_t>(i);
      if (*inbox.local(at) != element<std::uint32_t>(peer, round, i) ||
          *beside.local(set * beside.size() / 2 + at) != element<std::uint32_t>(peer + 2, round, i))
        atomicAdd(wrong, 1U);
    }
    group.sync();
  }
}

__global__ void small_puts(device_world w, symmetric<untax::packet> mailbox,
                           symmetric<std::uint32_t> inbox, symmetric<std::uint32_t> outbox,
                           symmetric<std::uint32_t> beside, unsigned* wrong) {
  if (blockDim.x == 1) {
    auto thread = w.thread(0);
    put_small_around(thread, mailbox, inbox, outbox, beside, wrong);
  } else if (blockDim.x == 32) {
    auto warp = w.warp(0);
    put_small_around(warp, mailbox, inbox, outbox, beside, wrong);
  } else {
    auto block = w.block();
    put_small_around(block, mailbox, inbox, outbox, beside, wrong);
  }
}

TEST(gpu_verbs, small_puts_release_earlier_writes) {
  NEEDS_GPUS(2);
  untax::run_gpus(
      2,
      [](world& w) {
        const stream s;
        cudaFuncAttributes attributes;
        ok(cudaFuncGetAttributes(&attributes, small_puts));
        for (const int threads : {1, 32, 128}) {
          const auto most = static_cast<std::size_t>(10 * threads + 1);
          const auto mailbox = w.allocate_cleared<untax::packet>(2 * most, "mailbox");
          const auto inbox = w.allocate_cleared<std::uint32_t>(most, "inbox");
          const auto outbox = w.allocate_cleared<std::uint32_t>(most, "outbox");
          const auto beside = w.allocate_cleared<std::uint32_t>(2 * most, "beside");
          const auto wrong = w.allocate_cleared<unsigned>(1, "wrong");
          w.barrier();
          small_puts<<<1, threads, 0, s.get()>>>(device_world(w.device_state()), mailbox, inbox,
                                                 outbox, beside, wrong.local());
          EXPECT_TRUE(s.done());
          w.check();
          EXPECT_EQ(values(wrong.local(), 1, s)[0], 0U) << threads << " threads";
          w.barrier();
        }
      },
      gpu_world());
}

/// Every rank puts its number of the round at every peer; after the barrier all are there, and
/// before the next round another barrier says that they were looked at.
__global__ void barrier_rounds(device_world w, untax::device_barrier barrier,
                               symmetric<std::uint32_t> board, int rounds, unsigned* wrong) {
  auto block = w.block();
  for (int round = 1; round <= rounds; ++round) {
    const auto number = static_cast<std::uint32_t>(round);
    for (int peer = block.thread_rank(); peer < w.size(); peer += block.size())
      *board.at(peer, static_cast<std::size_t>(w.rank())) = number;
    if (!barrier.arrive_and_wait(block)) return;
    for (int peer = block.thread_rank(); peer < w.size(); peer += block.size()) {
      if (*board.local(static_cast<std::size_t>(peer)) != number) atomicAdd(wrong, 1U);
    }
    if (!barrier.arrive_and_wait(block)) return;
  }
}

TEST(gpu_verbs, a_barrier_in_a_kernel_orders_all_ranks) {
  NEEDS_GPUS(2);
  at_ranks(2, [](world& w, const stream& s) {
    const auto ranks = static_cast<std::size_t>(w.size());
    const auto counters =
        w.allocate_cleared<std::uint64_t>(untax::device_barrier::words(w.size()), "barrier");
    const auto board = w.allocate_cleared<std::uint32_t>(ranks, "board");
    const auto wrong = w.allocate_cleared<unsigned>(1, "wrong");
    cudaFuncAttributes attributes;
    ok(cudaFuncGetAttributes(&attributes, barrier_rounds));
    w.barrier();
    // Twice: the second kernel goes on where the first one stopped counting.
    for (const int threads : {32, 256})
      barrier_rounds<<<1, threads, 0, s.get()>>>(device_world(w.device_state()),
                                                 untax::device_barrier(counters), board, 5000,
                                                 wrong.local());
    EXPECT_TRUE(s.done());
    w.check();
    EXPECT_EQ(values(wrong.local(), 1, s)[0], 0U);
  });
}

struct tallies {
  std::uint64_t sum;
  std::uint32_t least;
  float most;
  std::uint64_t bits;
  int turns;
};

/// All threads of all ranks change what lies at rank 0.
__global__ void tally(symmetric<tallies> board, symmetric<std::uint64_t> counter, int rounds) {
  const untax::device_thread self;
  tallies* at = board.at(0);
  const auto me = static_cast<int>(threadIdx.x) + 256 * board.rank();
  for (int round = 0; round < rounds; ++round) {
    untax::atomic_add(self, &at->sum, 3);
    untax::atomic_min(self, &at->least, static_cast<std::uint32_t>(5000 - me));
    untax::atomic_max(self, &at->most, static_cast<float>(me));
    untax::atomic_xor(self, &at->bits, std::uint64_t{1} << (me % 64));
    int expected = untax::load(self, &at->turns);
    for (;;) {
      const int seen = untax::atomic_compare_exchange(self, &at->turns, expected, expected + 2);
      if (seen == expected) break;
      expected = seen;
    }
    untax::signal_add(self, counter.at(0), 2);
  }
}

TEST(gpu_verbs, atomics_of_all_ranks_add_up) {
  NEEDS_GPUS(1);
  at_ranks(1, [](world& w, const stream& s) {
    constexpr int rounds = 50;
    const auto board = w.allocate_cleared<tallies>(1, "board");
    const auto counter = w.allocate_cleared<std::uint64_t>(1, "counter");
    const tallies begin{0, 1 << 20, -1.0F, 0, 0};
    if (w.rank() == 0) copy(board.local(), &begin, 1, s);
    w.barrier();
    tally<<<1, 256, 0, s.get()>>>(board, counter, rounds);
    EXPECT_TRUE(s.done());
    w.barrier();
    if (w.rank() != 0) return;
    const tallies found = values(board.local(), 1, s)[0];
    const std::uint64_t calls = 256U * rounds * static_cast<unsigned>(w.size());
    EXPECT_EQ(found.sum, 3 * calls);
    EXPECT_EQ(found.least, 5000U - 256U * static_cast<unsigned>(w.size()) + 1);
    EXPECT_EQ(found.most, static_cast<float>(256 * w.size() - 1));
    EXPECT_EQ(found.bits, 0U);
    EXPECT_EQ(found.turns, static_cast<int>(2 * calls));
    EXPECT_EQ(values(counter.local(), 1, s)[0], 2 * calls);
  });
}

}  // namespace

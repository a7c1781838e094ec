// Kernels that wait for ever: the world reports the waits, and CUDA goes on working.
#include <chrono>
#include <cstdint>
#include <thread>

#include <untax/flow/device_wait.cuh>
#include <untax/memory/host_memory.hpp>
#include <untax/world/launch.hpp>

#include "gpus.hpp"

namespace {

using namespace gpu_test;
using untax::device_control;
using untax::errc;
using untax::symmetric;
using untax::world;
using clock = std::chrono::steady_clock;

/// One thread waits until `counter` is 5, under the name "never".
__global__ void wait_for_five(device_control state, std::uint64_t* counter, int peer,
                              std::uint64_t* came) {
  untax::waiting<untax::device_thread> self(state, 3);
  *came = untax::wait_until(self, counter, 5, {.name = "never", .peer = peer, .room = 7}) ? 1 : 0;
}

__global__ void send(std::uint64_t* counter, std::uint64_t value) {
  untax::cuda_memory::raise_release(*counter, value);
}

/// Every rank signals the next one and waits for the one before.
void ring(world& w) {
  const stream s;
  const int next = (w.rank() + 1) % w.size();
  const int before = (w.rank() + w.size() - 1) % w.size();
  const auto counter = w.allocate_cleared<std::uint64_t>(2, "counter, and whether it came");
  send<<<1, 1, 0, s.get()>>>(counter.at(next), 5);
  wait_for_five<<<1, 1, 0, s.get()>>>(w.device_state(), counter.local(), before, counter.local(1));
  EXPECT_TRUE(s.done());
  w.check();
  EXPECT_EQ(values(counter.local(1), 1, s)[0], 1U);
}

/// Waits in a kernel for `peer`, which never signals more than 2, and then asks the world. Not
/// collective. The second counter says whether the signal came.
void wait_in_kernel(world& w, const symmetric<std::uint64_t>& counter, int peer) {
  const stream s;
  copy(counter.local(), std::vector<std::uint64_t>{2, 1}.data(), 2, s);
  wait_for_five<<<1, 1, 0, s.get()>>>(w.device_state(), counter.local(), peer, counter.local(1));
  EXPECT_TRUE(s.done()) << "the context is broken";
  EXPECT_EQ(values(counter.local(1), 1, s)[0], 0U);
  w.check();
  ADD_FAILURE() << "rank " << w.rank() << ": the world noticed nothing";
}

TEST(gpu_waits, a_ring_of_kernels_works) {
  NEEDS_GPUS(1);
  for (int ranks = 1; ranks <= gpus(); ++ranks) untax::run_gpus(ranks, ring, gpu_world());
}

TEST(gpu_waits, a_signal_that_never_comes_is_named_and_cuda_works_on) {
  NEEDS_GPUS(2);
  const int ranks = gpus();
  for (int round = 0; round < 2; ++round) {
    const auto begin = clock::now();
    const untax::error e = error_of([&] {
      untax::run_gpus(
          ranks,
          [&](world& w) {
            const auto counter =
                w.allocate_cleared<std::uint64_t>(2, "counter, and whether it came");
            wait_in_kernel(w, counter, (w.rank() + 1) % ranks);
          },
          gpu_world(500ms));
    });
    expect_error(e, errc::timeout,
                 {"waited 500 ms", "never wait_until, room 7, needs 5, has 2", "rank 1 waits for",
                  "Cycle: rank"});
    EXPECT_GE(clock::now() - begin, 500ms);
    EXPECT_LT(clock::now() - begin, 20s);
    untax::run_gpus(ranks, ring, gpu_world());
  }
}

TEST(gpu_waits, the_graph_mixes_kernels_and_threads) {
  NEEDS_GPUS(2);
  const untax::error e = error_of([&] {
    untax::run_gpus(
        2,
        [&](world& w) {
          const auto counter = w.allocate_cleared<std::uint64_t>(2, "counter, and whether it came");
          if (w.rank() == 0) wait_in_kernel(w, counter, 1);
          // The kernel's wait has to be the first to reach the limit.
          std::this_thread::sleep_for(200ms);
          w.barrier();
        },
        gpu_world(600ms));
  });
  expect_error(e, errc::timeout,
               {"rank 0: waited 600 ms for rank 1: never wait_until, room 7",
                "rank 1 waits for rank 0: world barrier", "Cycle: rank 0 -> rank 1 -> rank 0"});
}

TEST(gpu_waits, a_failure_of_a_rank_stops_the_kernels_of_others) {
  NEEDS_GPUS(2);
  const auto begin = clock::now();
  const untax::error e = error_of([&] {
    untax::run_gpus(
        2,
        [&](world& w) {
          const auto counter = w.allocate_cleared<std::uint64_t>(2, "counter, and whether it came");
          if (w.rank() == 0) wait_in_kernel(w, counter, 1);
          std::this_thread::sleep_for(100ms);
          throw untax::error(errc::unsupported, "cannot do this");
        },
        gpu_world(20s));
  });
  expect_error(e, errc::unsupported, {"cannot do this"});
  EXPECT_LT(clock::now() - begin, 15s);
}

TEST(gpu_waits, a_rank_that_finished_is_named_by_waiting_kernels) {
  NEEDS_GPUS(2);
  const auto begin = clock::now();
  const untax::error e = error_of([&] {
    untax::run_gpus(
        2,
        [&](world& w) {
          const auto counter = w.allocate_cleared<std::uint64_t>(2, "counter, and whether it came");
          if (w.rank() == 0) wait_in_kernel(w, counter, 1);
        },
        gpu_world(20s));
  });
  expect_error(e, errc::peer_lost, {"rank 1 finished without signalling", "never wait_until"});
  EXPECT_LT(clock::now() - begin, 15s);
}

/// Says when it started to wait, by the clock of the host.
__global__ void read_clock(device_control state, std::uint64_t* now) {
  *now = static_cast<std::uint64_t>(static_cast<std::int64_t>(untax::cuda_memory::now()) +
                                    state.clock_offset);
}

TEST(gpu_waits, kernels_know_the_time_of_the_host) {
  NEEDS_GPUS(1);
  untax::run_gpus(
      gpus(),
      [](world& w) {
        const stream s;
        const auto now = w.allocate<std::uint64_t>(1, "now");
        const std::uint64_t before = untax::host_memory::now();
        read_clock<<<1, 1, 0, s.get()>>>(w.device_state(), now.local());
        EXPECT_TRUE(s.done());
        const std::uint64_t after = untax::host_memory::now();
        const std::uint64_t seen = values(now.local(), 1, s)[0];
        constexpr std::uint64_t tolerance = 100'000;
        EXPECT_GE(seen + tolerance, before) << "rank " << w.rank();
        EXPECT_LE(seen, after + tolerance) << "rank " << w.rank();
      },
      gpu_world());
}

}  // namespace

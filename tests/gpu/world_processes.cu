// Worlds of GPUs whose ranks are processes: heaps are shared by descriptors, and the dead are
// missed.
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include <fmt/format.h>

#include <untax/flow/device_wait.cuh>
#include <untax/memory/host_memory.hpp>

#include "gpus.hpp"
#include "ops/all_gather_gemm/spec.hpp"
#include "ops/common/registry.hpp"
#include "ops/common/workload.hpp"
#include "ops/gemm_all_scatter/spec.hpp"
#include "tests/multi/ranks.hpp"

namespace {

using gpu_test::copy;
using gpu_test::gpu_world;
using gpu_test::stream;
using gpu_test::values;
using multi_test::belongings;
using multi_test::expect_ok;
using multi_test::launch;
using multi_test::outcome;
using multi_test::rank_body;
using multi_test::say;
using untax::device_control;
using untax::errc;
using untax::world;
using namespace std::chrono_literals;

__global__ void add_one_everywhere(untax::symmetric<int> field, int ranks) {
  for (int peer = 0; peer < ranks; ++peer)
    atomicAdd_system(field.at(peer, field.rank()), field.rank() + 1);
}

__global__ void wait_for_one(device_control state, std::uint64_t* counter, int peer) {
  untax::waiting<untax::device_thread> self(state, 0);
  static_cast<void>(
      untax::wait_until(self, counter, 1, {.name = "kernel", .peer = peer, .room = 4}));
}

__global__ void send_one(std::uint64_t* counter) { untax::cuda_memory::raise_release(*counter, 1); }

const rank_body exchange("gpu exchange", [] {
  for (int round = 0; round < 3; ++round) {
    world w = world::from_environment(gpu_world());
    EXPECT_EQ(w.memory(), untax::memory_kind::cuda);
    EXPECT_EQ(w.device(), w.rank() % gpu_test::gpus());
    const stream s;
    const auto field = w.allocate_cleared<int>(static_cast<std::size_t>(w.size()), "field");
    add_one_everywhere<<<1, 1, 0, s.get()>>>(field, w.size());
    EXPECT_TRUE(s.done());
    w.barrier();
    const auto found = values(field.local(), field.size(), s);
    for (int peer = 0; peer < w.size(); ++peer)
      EXPECT_EQ(found[static_cast<std::size_t>(peer)], peer + 1) << "rank " << w.rank();
    const auto counter = w.allocate_cleared<std::uint64_t>(1, "counter");
    send_one<<<1, 1, 0, s.get()>>>(counter.at((w.rank() + 1) % w.size()));
    wait_for_one<<<1, 1, 0, s.get()>>>(w.device_state(), counter.local(),
                                       (w.rank() + w.size() - 1) % w.size());
    EXPECT_TRUE(s.done());
    w.check();
    w.barrier();
  }
});

const rank_body growing("gpu growth", [] {
  world w = world::from_environment(gpu_world());
  const stream s;
  for (int round = 1; round <= 3; ++round) {
    (void)w.allocate<char>(std::size_t{100} << 20, "large");
    const auto field = w.allocate_cleared<int>(static_cast<std::size_t>(w.size()), "field");
    add_one_everywhere<<<1, 1, 0, s.get()>>>(field, w.size());
    EXPECT_TRUE(s.done());
    w.barrier();
    const auto found = values(field.local(), field.size(), s);
    for (int peer = 0; peer < w.size(); ++peer)
      EXPECT_EQ(found[static_cast<std::size_t>(peer)], peer + 1) << "rank " << w.rank();
  }
  EXPECT_GE(w.heap().capacity(), std::size_t{300} << 20);
  untax_test::expect_error(
      untax_test::error_of([&] { (void)w.allocate<char>(std::size_t{400} << 30, "too much"); }),
      errc::out_of_memory, {"on GPU", "are free", "too much"});
  w.barrier();
});

/// Processes may share a GPU: nothing waits in a kernel here.
TEST(gpu_processes, have_heaps_that_grow) {
  NEEDS_GPUS(1);
  const belongings before = belongings::now();
  for (const int ranks : {1, 2, 3}) expect_ok(launch("gpu growth", ranks));
  EXPECT_EQ(belongings::now(), before);
}

TEST(gpu_processes, share_their_heaps) {
  NEEDS_GPUS(1);
  NEEDS_OWN_GPUS();
  const belongings before = belongings::now();
  for (const int ranks : {1, 2, gpu_test::gpus()}) expect_ok(launch("gpu exchange", ranks));
  EXPECT_EQ(belongings::now(), before);
}

const rank_body multiplying("gpu operators", [] {
  auto options = gpu_world();
  options.heap_bytes = std::size_t{256} << 20;
  world w = world::from_environment(options);
  const untax::gemm_problem p{.m = 200, .n = 1000, .k = 520, .type = untax::dtype::bf16};
  for (const auto& entry : {untax::all_gather_gemm_entry(), untax::gemm_all_scatter_entry()}) {
    untax::workload load(w, entry, p, {}, 1);
    load.run();
    EXPECT_LE(load.relative_error(), untax::tolerance_of(entry, p)) << load.explain();
  }
});

TEST(gpu_processes, multiply_together) {
  NEEDS_GPUS(2);
  NEEDS_OWN_GPUS();
  const belongings before = belongings::now();
  expect_ok(launch("gpu operators", gpu_test::gpus()));
  EXPECT_EQ(belongings::now(), before);
}

const rank_body mixed("gpu and host", [] {
  auto options = gpu_world();
  if (multi_test::launched_rank() == 1) options.memory = untax::memory_kind::host;
  (void)world::from_environment(options);
});

TEST(gpu_processes, agree_on_where_heaps_lie) {
  NEEDS_GPUS(1);
  const outcome o = launch("gpu and host", 2);
  for (const int rank : {0, 1}) {
    multi_test::expect_error(o, rank, errc::disagreement,
                             {"different settings", "host memory", "memory of "});
  }
}

const rank_body huge("gpu out of memory", [] {
  auto options = gpu_world();
  options.heap_bytes = std::size_t{1} << 40;
  (void)world::from_environment(options);
});

TEST(gpu_processes, report_when_the_heap_is_full) {
  NEEDS_GPUS(1);
  const outcome o = launch("gpu out of memory", 2);
  for (const int rank : {0, 1})
    multi_test::expect_error(o, rank, errc::out_of_memory, {"are free", "UNTAX_HEAP_BYTES"});
}

/// Waits in a kernel for the next rank, which never signals.
void wait_for_next(world& w) {
  const stream s;
  const auto counter = w.allocate_cleared<std::uint64_t>(1, "counter");
  w.run([&](world&) {
    wait_for_one<<<1, 1, 0, s.get()>>>(w.device_state(), counter.local(),
                                       (w.rank() + 1) % w.size());
    if (w.rank() == 0) {
      while (!w.state().wait_at(1, untax::first_kernel_slot)) std::this_thread::sleep_for(1ms);
      say(fmt::format("WAITING {}", untax::host_memory::now()));
      if (multi_test::launched_size() > 1 && std::getenv("KILL") != nullptr)
        kill(static_cast<pid_t>(w.state().process(1)), SIGKILL);
    }
    EXPECT_TRUE(s.done()) << "the context is broken";
    w.check();
  });
}

/// Some ranks wait in their first barrier while others are still busy with CUDA: with eight on one
/// GPU for more than half a second.
constexpr std::chrono::milliseconds longest_wait = 3s;

const rank_body waits("gpu waits", [] {
  world w = world::from_environment(gpu_world(std::getenv("KILL") != nullptr ? 30s : longest_wait));
  wait_for_next(w);
});

TEST(gpu_processes, a_killed_rank_is_named_by_waiting_kernels) {
  NEEDS_GPUS(2);
  NEEDS_OWN_GPUS();
  const int ranks = gpu_test::gpus();
  const belongings before = belongings::now();
  const outcome o = launch("gpu waits", ranks, {{"KILL", "1"}});
  const std::string killed = o.said(0, "WAITING");
  ASSERT_FALSE(killed.empty()) << o.all(0);
  for (int rank = 0; rank < ranks; ++rank) {
    if (rank == 1) continue;
    multi_test::expect_error(o, rank, errc::peer_lost,
                             {"rank 1 is gone (its process ended)", "kernel wait_until, room 4"});
    unsigned long long noticed = 0;
    char code[32] = {};
    ASSERT_EQ(std::sscanf(o.said(rank, "ERROR").c_str(), "%31s %llu", code, &noticed), 2);
    EXPECT_LT(static_cast<double>(noticed - std::stoull(killed)) * 1e-9, 3.0) << "rank " << rank;
  }
  EXPECT_EQ(o.result.ends[1].signal, SIGKILL);
  EXPECT_EQ(belongings::now(), before);
}

TEST(gpu_processes, a_signal_that_never_comes_is_named) {
  NEEDS_GPUS(2);
  const int ranks = gpu_test::gpus();
  const outcome o = launch("gpu waits", ranks);
  int reporters = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const bool reporter = o.said(rank, "ERROR").starts_with("timeout");
    reporters += reporter ? 1 : 0;
    multi_test::expect_error(o, rank, reporter ? errc::timeout : errc::aborted,
                             {fmt::format("waited {} ms", longest_wait.count()),
                              "kernel wait_until, room 4, needs 1, has 0"});
  }
  EXPECT_EQ(reporters, 1);
}

}  // namespace

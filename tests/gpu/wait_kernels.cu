// Waits of kernels for several peers: a barrier and packets that do not come end in time, name the
// missing rank, and leave CUDA working.
#include <cstdint>
#include <thread>

#include <untax/world/device_world.cuh>
#include <untax/world/launch.hpp>

#include "gpus.hpp"

namespace {

using namespace gpu_test;
using untax::device_barrier;
using untax::device_world;
using untax::errc;
using untax::symmetric;
using untax::world;

__global__ void enter(device_world w, device_barrier barrier, std::uint64_t* came) {
  auto block = w.block();
  const bool all = barrier.arrive_and_wait(block, "roll call");
  if (block.thread_rank() == 0) *came = all ? 1 : 2;
}

__global__ void expect_packets(device_world w, const untax::packet* from, double* to,
                               std::uint64_t* came) {
  auto block = w.block();
  const auto outcome =
      untax::receive_packets(block, to, from, 300, 9, {.name = "letters", .peer = 1, .room = 4});
  if (block.thread_rank() == 0) *came = outcome == untax::wait_outcome::ok ? 1 : 2;
}

/// Two ranks, of which rank 0 runs `wait(world, stream, came)` for what never comes, and throws.
template <class Wait>
untax::error failure_of(const Wait& wait) {
  return error_of([&] {
    untax::run_gpus(
        2,
        [&](world& w) {
          const stream s;
          const auto came = w.allocate_cleared<std::uint64_t>(1, "came");
          wait(w, s, came.local());
          EXPECT_TRUE(s.done()) << "the context is broken";
          if (w.rank() == 0) {
            EXPECT_EQ(values(came.local(), 1, s)[0], 2U);
            w.check();
            ADD_FAILURE() << "the world noticed nothing";
          }
          // The kernel's wait has to be the first to reach the limit.
          std::this_thread::sleep_for(200ms);
          w.barrier();
        },
        gpu_world(500ms));
  });
}

TEST(gpu_waits, a_barrier_in_a_kernel_names_the_missing_rank) {
  NEEDS_GPUS(2);
  const untax::error e = failure_of([](world& w, const stream& s, std::uint64_t* came) {
    const auto words = w.allocate_cleared<std::uint64_t>(device_barrier::words(2), "barrier");
    if (w.rank() == 0)
      enter<<<1, 128, 0, s.get()>>>(device_world(w.device_state()), device_barrier(words), came);
  });
  expect_error(e, errc::timeout,
               {"rank 0: waited 500 ms for rank 1: roll call barrier, needs 1, has 0"});
}

TEST(gpu_waits, packets_that_do_not_come_are_named) {
  NEEDS_GPUS(2);
  const untax::error e = failure_of([](world& w, const stream& s, std::uint64_t* came) {
    const auto packets = w.allocate_cleared<untax::packet>(300, "packets");
    const auto letters = w.allocate_cleared<double>(300, "letters");
    if (w.rank() == 0)
      expect_packets<<<1, 128, 0, s.get()>>>(device_world(w.device_state()), packets.local(),
                                             letters.local(), came);
  });
  expect_error(e, errc::timeout,
               {"rank 0: waited 500 ms for rank 1: letters wait_until, room 4, needs 9, has 0"});
}

TEST(gpu_waits, a_barrier_works_after_a_failed_one) {
  NEEDS_GPUS(2);
  untax::run_gpus(
      2,
      [](world& w) {
        const stream s;
        const auto words = w.allocate_cleared<std::uint64_t>(device_barrier::words(2), "barrier");
        const auto came = w.allocate_cleared<std::uint64_t>(1, "came");
        w.barrier();
        enter<<<1, 128, 0, s.get()>>>(device_world(w.device_state()), device_barrier(words),
                                      came.local());
        EXPECT_TRUE(s.done());
        w.check();
        EXPECT_EQ(values(came.local(), 1, s)[0], 1U);
        w.barrier();
      },
      gpu_world());
}

}  // namespace

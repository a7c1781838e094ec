// Several threads that use one world at a time hear of it at once.
#include <atomic>

#include "support.hpp"

namespace {

using namespace c_test;

TEST(c_threads, a_second_thread_in_a_call_of_a_world_is_refused_at_once) {
  std::atomic<bool> heard = false;
  run_ranks(2, [&](untax_world* world, int rank) {
    if (rank == 1) {
      while (!heard) std::this_thread::yield();
      EXPECT_OK(untax_world_barrier(world));
      return;
    }
    // It is refused itself while this thread is in one of the calls below.
    std::thread other([&] {
      int32_t status = untax_world_barrier(world);
      while (status == untax_invalid_argument) status = untax_world_barrier(world);
      EXPECT_OK(status);
    });
    // Memory that was not allocated cannot be freed; the error is visible while the other thread is
    // in its call.
    void* memory = nullptr;
    const untax_all_reduce_problem problem{sizeof problem, 4, untax_f32, untax_sum};
    untax_operator* op = nullptr;
    while (untax_world_free(world, &heard) != untax_invalid_argument ||
           last_text().find("another thread") == std::string::npos) {
      std::this_thread::yield();
    }
    for (const int32_t status : {untax_world_barrier(world), untax_world_agree(world, "a", "b"),
                                 untax_world_allocate(world, 4, nullptr, &memory),
                                 untax_all_reduce_plan(world, &problem, nullptr, &op)}) {
      expect_failure(status, untax_invalid_argument, {"rank 0: another thread is in a call"});
    }
    heard = true;
    other.join();
  });
}

}  // namespace

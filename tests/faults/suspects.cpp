// The suspect of a wait-for graph if ranks wait for each other, and if a process is halted.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include <untax/flow/wait_graph.hpp>
#include <untax/world/launch.hpp>

#include "ops/all_gather_gemm/spec.hpp"
#include "ops/common/registry.hpp"
#include "src/world/process_liveness.hpp"

namespace untax::testing {
namespace {

wait_graph::waiter waiting(int rank, int peer, std::uint64_t progress) {
  return {rank, {"operator", verb::acquire, peer, 3, 4, 3, 1'000'000'000, progress}};
}

std::vector<rank_state> running(std::size_t ranks) { return {ranks, rank_state::running}; }

TEST(suspects, in_a_cycle_the_peer_of_the_least_advanced_wait_is_blamed) {
  // Rank 2 did not signal rank 1 in run 5; all others have come to run 6 and wait for each other.
  const wait_graph graph(running(3), {waiting(0, 1, 600), waiting(1, 2, 500), waiting(2, 1, 610)});
  for (const int from : {0, 1, 2}) EXPECT_EQ(graph.suspect(from), 2) << from;
  EXPECT_EQ(graph.cycle(0), (std::vector<int>{1, 2}));
}

/// The progress of a wait of rank 0 inside an operator, other than `before`.
std::uint64_t next_progress_of_rank_0(const untax::world& w, std::uint64_t before) {
  for (;;) {
    for (int slot = 0; slot < wait_slots; ++slot) {
      const auto wait = w.state().wait_at(0, slot);
      if (wait && wait->progress != 0 && wait->progress != before) return wait->progress;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// Rank 0 waits in the barrier of the first run, which is its second stage, and then in the only
// stage of the second run.
TEST(suspects, a_run_is_farther_than_every_stage_of_the_run_before) {
  run_threads(2, [](untax::world& w) {
    constexpr std::int64_t rows = 4;
    constexpr std::int64_t size = 16;
    const std::vector<float> ones(size * size, 1.0F);
    std::vector<float> c(2 * rows * size);
    std::uint64_t before = 0;
    for (const pattern how : {pattern::bulk_synchronous, pattern::fused_sequential}) {
      const auto op =
          all_gather_gemm_entry().make(w, {.m = 2 * rows, .n = size, .k = size}, {.how = how});
      if (w.rank() == 1) {
        const std::uint64_t progress = next_progress_of_rank_0(w, before);
        EXPECT_GT(progress, before) << name_of(how);
        before = progress;
      }
      op->run({ones.data(), dtype::f32, rows, size}, {ones.data(), dtype::f32, size, size},
              {c.data(), dtype::f32, 2 * rows, size}, {});
    }
  });
}

TEST(suspects, workers_of_one_rank_that_wait_for_each_other_do_not_count) {
  const wait_graph graph(
      running(2), {waiting(0, 0, 1), waiting(0, 1, 700), waiting(1, 0, 650), waiting(1, 1, 2)});
  EXPECT_EQ(graph.suspect(0), 0);
  EXPECT_EQ(graph.suspect(1), 0);
}

TEST(suspects, waits_without_a_progress_value_do_not_count) {
  const wait_graph some(running(2), {waiting(0, 1, 0), waiting(1, 0, 800)});
  EXPECT_EQ(some.suspect(0), 0);
  const wait_graph none(running(2), {waiting(0, 1, 0), waiting(1, 0, 0)});
  EXPECT_EQ(none.suspect(0), 1);
  EXPECT_EQ(none.suspect(1), 0);
}

TEST(suspects, ranks_that_are_not_concerned_are_not_blamed) {
  // Ranks 2 and 3 wait for each other about something older, which rank 0 has no part in.
  const wait_graph graph(
      running(4), {waiting(0, 1, 900), waiting(1, 0, 910), waiting(2, 3, 100), waiting(3, 2, 110)});
  EXPECT_EQ(graph.suspect(0), 1);
}

TEST(suspects, a_halted_rank_is_blamed_whatever_it_waited_for) {
  std::vector<rank_state> states = running(3);
  states[1] = rank_state::halted;
  const wait_graph graph(states, {waiting(0, 2, 600), waiting(1, 2, 100), waiting(2, 1, 610)});
  EXPECT_EQ(graph.suspect(0), 1);
  EXPECT_EQ(graph.describe(1), "rank 1 is halted (by SIGSTOP or a debugger)");
  EXPECT_TRUE(graph.cycle(0).empty());
}

/// A process that does nothing until it is killed.
class idle_process {
 public:
  idle_process() : process_(fork()) {
    while (process_ == 0) pause();
  }
  idle_process(const idle_process&) = delete;
  idle_process& operator=(const idle_process&) = delete;
  ~idle_process() {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  [[nodiscard]] pid_t id() const { return process_; }
  /// Sends a signal and returns when it has had its effect.
  void send(int number, int effect) const {
    kill(process_, number);
    siginfo_t ignored{};
    waitid(P_PID, static_cast<id_t>(process_), &ignored, effect | WNOWAIT);
  }

 private:
  pid_t process_;
};

TEST(suspects, a_process_that_is_held_is_halted_and_alive) {
  const idle_process child;
  const process_liveness seen({getpid(), child.id(), 0});
  EXPECT_FALSE(seen.halted(1));
  child.send(SIGSTOP, WSTOPPED);
  EXPECT_TRUE(seen.halted(1));
  EXPECT_TRUE(seen.alive(1));
  child.send(SIGCONT, WCONTINUED);
  EXPECT_FALSE(seen.halted(1));
  child.send(SIGKILL, WEXITED);
  EXPECT_FALSE(seen.halted(1));
  EXPECT_FALSE(seen.alive(1));
  EXPECT_FALSE(seen.halted(0)) << "this process itself";
  EXPECT_FALSE(seen.halted(2)) << "one that cannot be seen";
}

// Handles are descriptors, of which a process may have no more.
TEST(suspects, a_process_without_a_handle_is_found_by_its_id) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const auto without_descriptors = [&](const std::vector<int>& processes) {
    const rlimit none{0, before.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
    auto seen = std::make_unique<process_liveness>(processes);
    setrlimit(RLIMIT_NOFILE, &before);
    return seen;
  };
  pid_t ended = 0;
  {
    const idle_process child;
    ended = child.id();
    const auto seen = without_descriptors({child.id(), 0});
    for (int look = 0; look < 2; ++look) {
      errno = ESRCH;
      EXPECT_TRUE(seen->alive(0)) << look;
      EXPECT_TRUE(seen->alive(1)) << "one that cannot be seen";
    }
    child.send(SIGKILL, WEXITED);
    EXPECT_TRUE(seen->alive(0)) << "nobody has taken note of its end";
  }
  EXPECT_FALSE(without_descriptors({ended})->alive(0));
}

}  // namespace
}  // namespace untax::testing

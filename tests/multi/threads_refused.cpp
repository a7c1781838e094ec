// The system refuses threads: the error says how many there were, nothing is left running, and the
// other ranks hear of it. Each case is a process of its own, since it lowers its own limits.
#include <malloc.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include <fmt/format.h>

#include <untax/ops/all_gather_gemm.hpp>
#include <untax/world/launch.hpp>

#include "ranks.hpp"

namespace {

using namespace multi_test;
using untax::errc;
using untax::world;

constexpr int allowed = 2;

/// From now on this process gets `allowed` threads, and memory for all else. Threads ask for large
/// stacks, and the address space has no room for another one.
void allow_few_threads() {
  std::thread([] {}).join();  // a sanitizer makes a thread of its own beside the first
  constexpr std::size_t stack = std::size_t{512} << 20;
  mallopt(M_ARENA_MAX, 1);  // threads would take a part of the room for arenas of their own
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, stack);
  ASSERT_EQ(pthread_setattr_default_np(&attributes), 0);
  pthread_attr_destroy(&attributes);
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const std::size_t used = pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const rlimit limit{used + allowed * stack + stack / 2, RLIM_INFINITY};
  ASSERT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
}

std::size_t threads_now() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/task"))
    ++count;
  return count;
}

/// A thread that was joined may be listed for another moment.
void expect_threads(std::size_t expected) {
  for (int i = 0; i < 1000 && threads_now() != expected; ++i) usleep(1000);
  EXPECT_EQ(threads_now(), expected);
}

untax::operator_options with(untax::launch_mode launch) {
  untax::operator_options options;
  options.how = untax::pattern::fused_specialized;
  options.workers = 5;
  options.senders = 2;
  options.tile_m = 4;
  options.tile_n = 4;
  options.launch = launch;
  return options;
}

constexpr untax::all_gather_gemm_problem problem{
    .m = 48, .n = 16, .k = 16, .type = untax::dtype::f32};

/// The last rank gets few threads; the operator wants seven workers.
void multiply(untax::launch_mode launch) {
  world w = world::from_environment(small_world());
  if (w.rank() == w.size() - 1) allow_few_threads();
  const std::size_t before = threads_now();
  try {
    w.run([&](world& self) {
      untax::all_gather_gemm op(self, problem, with(launch));
      const std::int64_t rows = problem.m / self.size();
      std::vector<float> a(static_cast<std::size_t>(rows * problem.k), 1);
      std::vector<float> weights(static_cast<std::size_t>(problem.n * problem.k), 1);
      std::vector<float> c(static_cast<std::size_t>(problem.m * problem.n));
      op.run(untax::const_matrix(a.data(), rows, problem.k),
             untax::const_matrix(weights.data(), problem.n, problem.k),
             untax::matrix(c.data(), problem.m, problem.n));
      // A rank that got all it needed before the other one failed learns of it here.
      self.barrier();
    });
  } catch (const untax::error&) {
    expect_threads(before);
    throw;
  }
}

const rank_body eager("few threads, eager", [] { multiply(untax::launch_mode::eager); });
const rank_body graph("few threads, graph", [] { multiply(untax::launch_mode::graph); });

void expect_refusal(const outcome& o, int asked) {
  const int last = static_cast<int>(o.lines.size()) - 1;
  const std::string said = fmt::format(
      "all_gather_gemm: {} threads were asked for, and {} could be started", asked, allowed);
  expect_error(o, last, errc::out_of_memory, {fmt::format("rank {}: {}", last, said), "ulimit -u"});
  for (int rank = 0; rank < last; ++rank)
    expect_error(o, rank, errc::aborted, {fmt::format("rank {}", last), said});
  for (const auto& end : o.result.ends) EXPECT_EQ(end.exit_code, 1) << o.all(end.rank);
}

TEST(threads_refused, end_an_eager_run_and_leave_nothing_behind) {
  expect_refusal(launch("few threads, eager", 1), 7);
  expect_refusal(launch("few threads, eager", 2), 7);
}

TEST(threads_refused, end_the_construction_of_waiting_workers_and_leave_nothing_behind) {
  // The calling thread is a worker, too.
  expect_refusal(launch("few threads, graph", 1), 6);
  expect_refusal(launch("few threads, graph", 2), 6);
}

const rank_body world_of_threads("few threads, world", [] {
  allow_few_threads();
  const std::size_t before = threads_now();
  try {
    // Those that run wait for those that do not.
    untax::run_threads(
        4, [](world& w) { w.barrier(); }, small_world());
  } catch (const untax::error&) {
    expect_threads(before);
    throw;
  }
});

TEST(threads_refused, end_a_world_of_threads) {
  expect_error(launch("few threads, world", 1), 0, errc::out_of_memory,
               {"a world of threads: 4 threads were asked for, and 2 could be started"});
}

}  // namespace

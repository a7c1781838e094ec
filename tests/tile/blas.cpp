// The state of a process after loading OpenBLAS.
#include "engines/host/openblas.hpp"

#include <sched.h>

#include <filesystem>
#include <iterator>
#include <thread>

#include <gtest/gtest.h>

namespace {

int processors_here() {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  return CPU_COUNT(&set);
}

std::size_t threads_here() {
  const std::filesystem::directory_iterator all("/proc/self/task");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

const int processors_at_start = processors_here();
const std::size_t threads_at_start = threads_here();

// It is loaded by a thread that may run on one processor only for so long.
TEST(openblas, is_loaded_by_threads_that_may_run_anywhere_afterwards) {
  EXPECT_NE(untax::host::blas().sgemm, nullptr);
  EXPECT_EQ(threads_here(), threads_at_start) << "it made threads of its own";
  EXPECT_EQ(processors_here(), processors_at_start);
  std::thread([] { EXPECT_EQ(processors_here(), processors_at_start); }).join();
}

}  // namespace

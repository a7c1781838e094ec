// What loading OpenBLAS leaves behind.
#include "engines/host/openblas.hpp"

#include <sched.h>

#include <thread>

#include <gtest/gtest.h>

namespace {

int processors_here() {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  return CPU_COUNT(&set);
}

const int processors_at_start = processors_here();

// It is loaded by a thread that may run on one processor only for so long.
TEST(openblas, is_loaded_by_threads_that_may_run_anywhere_afterwards) {
  EXPECT_NE(untax::host::blas().sgemm, nullptr);
  EXPECT_EQ(processors_here(), processors_at_start);
  std::thread([] { EXPECT_EQ(processors_here(), processors_at_start); }).join();
}

}  // namespace

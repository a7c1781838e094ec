// How many blocks move what when all of A is gathered before anything is multiplied. That they send
// and await each piece once is among what lowered.cpp looks at.
#include <cstdint>

#include <gtest/gtest.h>

#include "ops/all_gather_gemm/device_plan.hpp"
#include "tests/plans/planned.hpp"

namespace {

using namespace untax;
using plans_test::processors;

/// A plan of bulk_synchronous.
gather_plan plan_at_once(const all_gather_gemm_problem& problem, int world, int movers = 0,
                         int places = processors) {
  operator_options options;
  options.how = pattern::bulk_synchronous;
  options.movers = movers;
  return gather_plans(problem, world, 0, options, places).front();
}

/// A few words of each thread, and no more blocks than have some.
TEST(gathers_at_once, few_bytes_go_to_few_blocks) {
  const auto movers = [](std::int64_t m, int world) {
    const gather_plan plan = plan_at_once({.m = m, .n = 7168, .k = 8192}, world);
    EXPECT_FALSE(plan.boxes);
    return plan.apart;
  };
  EXPECT_EQ(movers(1, 2), 4);
  EXPECT_EQ(movers(16, 2), 32);
  EXPECT_EQ(movers(16, 4), 16);
  EXPECT_EQ(movers(512, 2), 128);
}

/// As many blocks as fill the link, with as many boxes each as make them end together.
TEST(gathers_at_once, many_bytes_go_in_boxes) {
  const auto movers = [](const all_gather_gemm_problem& problem, int world, int asked = 0,
                         int places = processors) {
    const gather_plan plan = plan_at_once(problem, world, asked, places);
    EXPECT_TRUE(plan.boxes);
    return plan.apart;
  };
  const auto rows = [](std::int64_t m) {
    return all_gather_gemm_problem{.m = m, .n = 7168, .k = 8192};
  };
  EXPECT_EQ(movers(rows(1024), 2), 44) << "256 boxes, 6 a block, in pairs";
  EXPECT_EQ(movers(rows(1024), 4), 22) << "128 boxes";
  EXPECT_EQ(movers(rows(768), 4), 16) << "96 boxes";
  EXPECT_EQ(movers(rows(640), 8), 16) << "64 boxes, 4 a block";
  EXPECT_EQ(movers(rows(8192), 2), 64) << "2048 boxes, 32 a block";
  EXPECT_EQ(movers(rows(8000), 4), 64) << "1024 boxes, the last rows of which are shorter";
  EXPECT_EQ(movers(rows(8192), 4, 7), 8);
  EXPECT_EQ(movers(rows(8192), 4, 200), processors);
  EXPECT_EQ(movers(rows(8192), 4, 0, 33), 32) << "1024 boxes, 32 a block";
  EXPECT_EQ(movers(rows(8192), 4, 99, 33), 32) << "there are no more pairs";
  all_gather_gemm_problem columns = rows(2048);
  columns.gather = gather_axis::k;
  EXPECT_EQ(movers(columns, 4), 44) << "32 x 8 boxes";
}

}  // namespace

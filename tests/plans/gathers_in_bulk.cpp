// How many blocks move what when all of A is gathered before anything is multiplied. That they send
// and await each chunk once is among what lowered.cpp looks at.
#include <cstdint>

#include <gtest/gtest.h>

#include "ops/all_gather_gemm/device_plan.hpp"
#include "tests/plans/planned.hpp"

namespace {

using namespace untax;
using plans_test::num_sms;

/// A plan of bulk_synchronous.
gather_plan plan_bulk(const all_gather_gemm_problem& problem, int world, int senders = 0,
                      int places = num_sms) {
  operator_options options;
  options.how = pattern::bulk_synchronous;
  options.senders = senders;
  return gather_plans(problem, world, 0, options, places).front();
}

/// A few words of each thread, and no more blocks than have some.
TEST(gathers_in_bulk, few_bytes_go_to_few_blocks) {
  const auto senders = [](std::int64_t m, int world) {
    const gather_plan plan = plan_bulk({.m = m, .n = 7168, .k = 8192}, world);
    EXPECT_FALSE(plan.tma_tiles);
    return plan.own_grid;
  };
  EXPECT_EQ(senders(1, 2), 4);
  EXPECT_EQ(senders(16, 2), 32);
  EXPECT_EQ(senders(16, 4), 16);
  EXPECT_EQ(senders(512, 2), 128);
}

/// As many blocks as fill the link, with as many TMA tiles each as make them end together.
TEST(gathers_in_bulk, many_bytes_go_in_tma_tiles) {
  const auto senders = [](const all_gather_gemm_problem& problem, int world, int asked = 0,
                          int places = num_sms) {
    const gather_plan plan = plan_bulk(problem, world, asked, places);
    EXPECT_TRUE(plan.tma_tiles);
    return plan.own_grid;
  };
  const auto rows = [](std::int64_t m) {
    return all_gather_gemm_problem{.m = m, .n = 7168, .k = 8192};
  };
  EXPECT_EQ(senders(rows(1024), 2), 44) << "256 TMA tiles, 6 a block, in pairs";
  EXPECT_EQ(senders(rows(1024), 4), 22) << "128 TMA tiles";
  EXPECT_EQ(senders(rows(768), 4), 16) << "96 TMA tiles";
  EXPECT_EQ(senders(rows(640), 8), 16) << "64 TMA tiles, 4 a block";
  EXPECT_EQ(senders(rows(8192), 2), 64) << "2048 TMA tiles, 32 a block";
  EXPECT_EQ(senders(rows(8000), 4), 64) << "1024 TMA tiles, the last rows of which are shorter";
  EXPECT_EQ(senders(rows(8192), 4, 7), 8);
  EXPECT_EQ(senders(rows(8192), 4, 200), num_sms);
  EXPECT_EQ(senders(rows(8192), 4, 0, 33), 32) << "1024 TMA tiles, 32 a block";
  EXPECT_EQ(senders(rows(8192), 4, 99, 33), 32) << "there are no more pairs";
  all_gather_gemm_problem columns = rows(2048);
  columns.gather = gather_axis::k;
  EXPECT_EQ(senders(columns, 4), 44) << "32 x 8 TMA tiles";
}

}  // namespace

// When epilogue warps move in a gather, how, and how fast.
#include <cstdint>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "engines/gpu/comm/sending.hpp"
#include "ops/all_gather_gemm/device_plan.hpp"
#include "ops/all_gather_gemm/protocol.hpp"
#include "tests/plans/planned.hpp"

namespace {

using namespace untax;
using plans_test::num_sms;

gather_plan planned(const all_gather_gemm_problem& problem, int ranks, int senders = 0) {
  operator_options options;
  options.how = pattern::fused_warp_specialized;
  options.senders = senders;
  return gather_plans(problem, ranks, 0, options, num_sms).front();
}

all_gather_gemm_problem of_rows(std::int64_t m, std::int64_t n,
                                gather_axis gather = gather_axis::rows) {
  return {.m = m, .n = n, .k = 8192, .gather = gather};
}

TEST(gathers_by_epilogue, where_the_first_tiles_take_long_enough) {
  for (const gather_axis gather : {gather_axis::rows, gather_axis::k}) {
    for (const std::int64_t m : {256, 512, 1024}) {
      SCOPED_TRACE(fmt::format("{} rows, gather {}", m, name_of(gather)));
      EXPECT_EQ(planned(of_rows(m, 3584, gather), 2).who, gather_senders::epilogue_warps);
    }
  }
  EXPECT_EQ(planned(of_rows(2048, 7168), 2).who, gather_senders::epilogue_warps);
  // Weights are x; a shard is large; tiles are small; few are asked to move much.
  EXPECT_EQ(planned(of_rows(128, 3584), 2).who, gather_senders::warps);
  EXPECT_EQ(planned(of_rows(4096, 3584), 2).who, gather_senders::warps);
  EXPECT_EQ(planned(of_rows(1024, 512), 2).who, gather_senders::warps);
  EXPECT_EQ(planned(of_rows(1024, 3584), 2, 4).who, gather_senders::warps);
}

TEST(gathers_by_epilogue, tma_tiles_that_tiles_begin_with_go_first) {
  int looked_at = 0;
  for (const int ranks : {2, 4, 8}) {
    for (const std::int64_t m : {256, 512, 999, 1024}) {
      const all_gather_gemm_problem problem = of_rows(m, 3584);
      const gather_plan plan = planned(problem, ranks);
      if (plan.who != gather_senders::epilogue_warps) continue;
      ++looked_at;
      SCOPED_TRACE(fmt::format("{} rows, {} ranks: {}", m, ranks, plan.text()));
      const gpu::tile_config& config = plan.gemm.config;
      const all_gather_gemm_protocol how(problem, plan.protocol);
      const sending_grid grid = sending_grid::of(how);
      // The first column of each part of k that a block of a cluster has.
      std::set<int> begun;
      for (int i = 0; i < grid.row_chunks * config.cluster_split_k; ++i)
        begun.insert(how.chunk_in_turn(0, i) % grid.in_row);
      ASSERT_EQ(static_cast<int>(begun.size()), config.cluster_split_k);
      int expected = 0;
      for (const int column : begun) {
        ASSERT_EQ(column, expected);
        expected += grid.in_row / config.cluster_split_k;
      }
    }
  }
  EXPECT_GE(looked_at, 6);
}

TEST(gathers_by_epilogue, rate_limit_is_what_tiles_need_but_not_too_slow_or_fast) {
  EXPECT_EQ(planned(of_rows(512, 7168), 2).rate_limit, 200);
  const int between = planned(of_rows(2048, 7168), 2).rate_limit;
  EXPECT_GT(between, 200);
  EXPECT_LT(between, 300);
  EXPECT_EQ(planned(of_rows(1024, 3584), 8).rate_limit, 300);
}

/// TMA tiles have their times one after the other: peer by peer where tiles of one source follow
/// those of another, and otherwise in turn to all peers.
TEST(gathers_by_epilogue, each_tma_tile_has_a_time_of_its_own) {
  for (const std::int64_t n : {3584, 7168}) {
    const all_gather_gemm_problem problem = of_rows(1024, n);
    const gather_plan plan = planned(problem, 4);
    ASSERT_EQ(plan.who, gather_senders::epilogue_warps);
    ASSERT_EQ(plan.protocol.fan_out, n == 3584);
    const sending_grid grid = sending_grid::of(all_gather_gemm_protocol(problem, plan.protocol));
    std::set<std::uint64_t> times;
    int sent = 0;
    for (int epilogue_warp = 0; epilogue_warp < plan.protocol.senders; ++epilogue_warp) {
      grid.each(strided{epilogue_warp, plan.protocol.senders},
                [&](const outgoing_chunk& p, int hop, int hops) {
                  times.insert(grid.bytes_before(p, hop));
                  sent += hops;
                });
    }
    const int tma_tiles = grid.row_chunks * grid.in_row;
    EXPECT_EQ(sent, tma_tiles * 3);
    EXPECT_EQ(static_cast<int>(times.size()), plan.protocol.fan_out ? tma_tiles : tma_tiles * 3);
    const auto step =
        std::uint64_t{grid.tma_tile_bytes()} * static_cast<unsigned>(grid.hops_together());
    std::uint64_t expected = 0;
    for (const std::uint64_t time : times) {
      ASSERT_EQ(time, expected);
      expected += step;
    }
  }
}

TEST(gathers_by_epilogue, as_many_as_asked_for) {
  EXPECT_EQ(planned(of_rows(1024, 3584), 2).protocol.senders, 256);
  EXPECT_EQ(planned(of_rows(1024, 3584), 2, 200).protocol.senders, 200);
  EXPECT_EQ(planned(of_rows(1024, 3584), 2, 1000).protocol.senders, 256);
}

}  // namespace

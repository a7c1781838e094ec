// Where the planner's choices end: how many blocks move, how wide tiles may be, how many rows are
// collected first, where operands end, and from where on shares of tiles could not be counted.
#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/plans/cases.hpp"

namespace {

using namespace untax;
using plans_test::num_sms;

/// Beside so many that multiply in pairs.
int most_beside(int places) { return (places - 2) / 2 * 2; }

TEST(limits, every_even_number_of_blocks_that_move_is_tried) {
  for (const pattern how : {pattern::fused_specialized, pattern::producer_consumer}) {
    for (const int places : {132, 22, 20, 12}) {
      std::set<int> moving;
      for (const gather_plan& p :
           gather_plans({.m = 4096, .n = 3584, .k = 8192}, 2, 0, {.how = how}, places)) {
        ASSERT_TRUE(p.tma_tiles);
        moving.insert(how == pattern::producer_consumer ? p.own_grid : p.comm_ctas);
      }
      SCOPED_TRACE(fmt::format("{}, {} SMs", name_of(how), places));
      ASSERT_FALSE(moving.empty());
      EXPECT_EQ(*moving.begin(), 4);
      EXPECT_EQ(*moving.rbegin(), std::min(20, most_beside(places)));
      for (const int number : moving) EXPECT_EQ(number % 2, 0);
    }
  }
}

TEST(limits, tiles_are_no_wider_than_twice_the_rows) {
  for (std::int64_t m = 1; m <= 300; ++m) {
    std::set<int> widths;
    std::set<int> all;
    for (const gpu::gemm_plan& p : gpu::gemm_plans({m, 3584, 8192}, num_sms))
      if (p.config.swap_ab) widths.insert(p.config.block_n);
    for (const gpu::tile_config& c : gpu::tile_configs())
      if (c.swap_ab && c.block_n > 128 && 2 * m > c.block_n) all.insert(c.block_n);
    for (const int width : widths) ASSERT_TRUE(width <= 128 || all.count(width) == 1) << m;
    for (const int width : all) ASSERT_EQ(widths.count(width), 1U) << width << " for " << m;
  }
}

TEST(limits, a_cluster_shares_a_tile_from_a_stage_for_each_of_its_blocks_on) {
  for (const gpu::tile_config& c : gpu::tile_configs()) {
    if (c.cluster_split_k == 1) continue;
    for (const int stages : {c.cluster_split_k - 1, c.cluster_split_k}) {
      const std::int64_t k = std::int64_t{stages} * gpu::k_blocks_per_stage(c) * gpu::block_k;
      const auto plans = gpu::gemm_plans({c.block_n, 512, k}, num_sms);
      EXPECT_EQ(std::ranges::count(plans, c, &gpu::gemm_plan::config),
                stages == c.cluster_split_k ? 1 : 0)
          << c.block_n << " by " << c.cluster_split_k << ", k " << k;
    }
  }
}

TEST(limits, few_rows_are_collected_where_segments_would_waste_much) {
  const auto plan_of = [](std::int64_t m, int world) {
    return gather_plans({.m = m, .n = 3584, .k = 8192}, world, 0,
                        {.how = pattern::fused_specialized}, num_sms)
        .front();
  };
  for (const auto& [m, world] : {std::pair<std::int64_t, int>{128, 2}, {4096, 3}}) {
    EXPECT_EQ(plan_of(m, world).segment_rows, 0) << m;
    EXPECT_EQ(plan_of(m, world).sources.size(), 1U) << m;
  }
  EXPECT_EQ(plan_of(4096, 2).segment_rows, 2048) << "nothing is wasted";
  EXPECT_EQ(plan_of(4104, 8).segment_rows, 640) << "too many rows";
}

TEST(limits, copy_engines_have_the_streams_that_were_asked_for) {
  for (const int senders : {0, 1, 2, 3}) {
    const operator_options options{.how = pattern::copy_engine, .senders = senders};
    const auto gather = gather_plans({.m = 64, .n = 3584, .k = 8192}, 2, 0, options, num_sms);
    EXPECT_EQ(gather.front().streams, senders == 0 ? 1 : senders);
    const auto scatter = scatter_plans({64, 3584, 8192}, 2, 0, options, num_sms);
    EXPECT_EQ(scatter.front().streams, senders == 0 ? 2 : senders);
    EXPECT_EQ(scatter.front().protocol.senders, scatter.front().streams);
  }
}

TEST(limits, shares_of_tiles_are_counted_in_32_bits) {
  int cut = 0;
  int whole = 0;
  for (const std::int64_t k :
       {std::int64_t{1} << 20, std::int64_t{1} << 27, (std::int64_t{1} << 30) - 8}) {
    for (const std::int64_t n : {520, 3584, 40'000}) {
      for (const gpu::gemm_plan& p : gpu::gemm_plans({300, n, k}, num_sms)) {
        const gpu::tile_schedule& order = p.schedule;
        const std::int64_t stages =
            (order.k_blocks + order.k_blocks_per_stage - 1) / order.k_blocks_per_stage;
        if (order.stream_k_tiles == 0) {
          ++whole;
        } else {
          ++cut;
          ASSERT_LE(order.stream_k_tiles * stages, std::numeric_limits<std::int32_t>::max())
              << p.text();
        }
      }
    }
  }
  EXPECT_GT(cut, 0);
  EXPECT_GT(whole, 0);
}

/// A GEMM's operands end with a tile, or within one, of which so much is read.
TEST(operand_ends, are_where_the_last_tile_is_not_full) {
  for (const std::int64_t m : {1, 16, 40, 128, 129, 200, 256, 300, 1000, 2048}) {
    for (const std::int64_t n : {64, 256, 520, 3584}) {
      for (const gpu::gemm_plan& p : gpu::gemm_plans({m, n, 1024}, 132)) {
        SCOPED_TRACE(p.text());
        const gpu::tile_config& c = p.config;
        const std::int64_t of_m = c.swap_ab ? n : m;
        const std::int64_t of_n = c.swap_ab ? m : n;
        const int rows = c.warpgroup_split_k ? 64 : 128;
        const auto m_end = gpu::m_end_of(p, of_m);
        ASSERT_EQ(m_end.begin % rows, 0);
        ASSERT_EQ(m_end.begin + m_end.rows, of_m);
        ASSERT_LT(m_end.rows, rows);
        const auto n_end = gpu::n_end_of(p, of_n);
        if (of_n <= c.block_n || of_n % c.block_n == 0) {
          ASSERT_EQ(n_end.rows, 0);
          ASSERT_GE(n_end.begin, of_n) << "no row is behind it";
        } else {
          const auto left = static_cast<int>(of_n % c.block_n);
          ASSERT_EQ(n_end.begin, of_n - left);
          ASSERT_EQ(n_end.rows % 8, 0);
          ASSERT_GE(n_end.rows * c.cluster, left) << "the blocks of a cluster read all of them";
          ASSERT_LT((n_end.rows - 8) * c.cluster, left) << "and hardly more";
        }
      }
    }
  }
}

TEST(kept_weights, are_those_of_the_widest_tiles) {
  gpu::tile_config c{.block_n = 129, .swap_ab = true};
  EXPECT_TRUE(gpu::keeps_weights(c));
  c.block_n = 128;
  EXPECT_FALSE(gpu::keeps_weights(c));
  EXPECT_FALSE(gpu::keeps_weights({.block_n = 256}));
  EXPECT_FALSE(gpu::keeps_weights({.block_n = 256, .swap_ab = true, .warpgroup_split_k = true}));
}

}  // namespace

// Where the planner's choices end: how many blocks move or add, how wide tiles may be, how many
// rows are collected first, and from where on shares of tiles could not be counted.
#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ops/gemm_reduce_common/device_plan.hpp"
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

TEST(limits, sums_have_pairs_that_add_beside_two_that_multiply) {
  for (const pattern how :
       {pattern::producer_consumer, pattern::fused_sequential, pattern::fused_specialized}) {
    for (const int senders : {0, 1, 2, 5, 40}) {
      for (int places = 6; places <= 40; ++places) {
        SCOPED_TRACE(fmt::format("{}, {} senders, {} SMs", name_of(how), senders, places));
        const device_sum sum{"a sum", 300, 264, 328};
        const auto plans = sums_plans(sum, 2, 1, {.how = how, .senders = senders}, places);
        const int asked = senders == 0 ? 8 : (senders + 1) / 2 * 2;
        for (const sums_plan& p : plans) {
          ASSERT_EQ(p.own_grid, std::min(asked, most_beside(places)));
          ASSERT_EQ(p.comm_ctas, how == pattern::fused_specialized ? p.own_grid : 0);
          ASSERT_EQ(p.beside, how == pattern::producer_consumer);
          const bool alone = how == pattern::fused_sequential;
          ASSERT_LE(p.gemm.blocks() + (alone ? 0 : p.own_grid), places);
          // Those that add when they have multiplied are all, of one kernel or of two.
          const int warps = alone ? p.gemm.blocks() * 8 : p.own_grid * 12;
          ASSERT_EQ(p.adding_warps(true), warps);
          ASSERT_EQ(p.adding_warps(false), p.own_grid * 12);
        }
      }
    }
  }
}

TEST(limits, ranks_begin_with_sums_of_the_rows_of_the_next) {
  for (const int ranks : {2, 3, 4}) {
    for (const std::int64_t m : {130, 300, 1000, 4096}) {
      for (int rank = 0; rank < ranks; ++rank) {
        const device_sum sum{"a sum", m, 1024, 2048};
        for (const sums_plan& p :
             sums_plans(sum, ranks, rank, {.how = pattern::fused_sequential}, num_sms)) {
          SCOPED_TRACE(fmt::format("{} rows, rank {} of {}, {}", m, rank, ranks, p.text()));
          const gpu::sum_fragments& how = p.how;
          const int cluster = p.gemm.config.cluster;
          ASSERT_LT(how.first_row_tile, std::max(how.row_tiles, 1));
          if (how.swap_ab) {
            ASSERT_EQ(how.first_row_tile, 0);
            continue;
          }
          ASSERT_EQ(how.raster_rows, p.gemm.schedule.raster_group * cluster);
          ASSERT_EQ(how.first_row_tile % cluster, 0) << "clusters stay whole";
          const int row = how.first_row_tile * how.tile_m;
          const int before = row - cluster * how.tile_m;
          if (how.first_row_tile == 0) {
            // Behind the own rows there is no whole cluster.
            ASSERT_GT(how.end_row(rank), (how.row_tiles - cluster) * how.tile_m);
          } else {
            ASSERT_GE(row, how.end_row(rank));
            ASSERT_LT(before, how.end_row(rank)) << "the first such cluster";
          }
        }
      }
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

}  // namespace

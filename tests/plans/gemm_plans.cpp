// Tiles, stages and reads of GEMM plans: they cover the shape, and fit on the GPU.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <set>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "engines/gpu/gemm/cta_reads.hpp"
#include "engines/gpu/gemm/kernels.hpp"
#include "engines/gpu/gemm/plan.hpp"
#include "tests/errors.hpp"
#include "tests/plans/cases.hpp"

namespace {

using namespace plans_test;
using namespace untax;
using namespace untax::gpu;

/// Of a plan for a shape: tiles, what blocks read for each other, and bytes that barriers expect.
void expect_sound(const gemm_plan& p, const gemm_shape& s, int sms) {
  const tile_config& c = p.config;
  const tile_schedule& order = p.schedule;
  const std::int64_t x = c.swap_ab ? s.n : s.m;
  const std::int64_t y = c.swap_ab ? s.m : s.n;
  // Tiles cover the result, and none is beyond it.
  ASSERT_EQ(order.m_tiles, ceil_div<std::int64_t>(x, tile_rows(c) * c.cluster));
  ASSERT_EQ(order.n_tiles, ceil_div<std::int64_t>(y, c.block_n));
  // K-blocks cover k in whole stages.
  ASSERT_EQ(order.k_blocks_per_stage, k_blocks_per_stage(c));
  ASSERT_EQ(order.k_blocks % order.k_blocks_per_stage, 0);
  ASSERT_EQ(order.stages(), ceil_div<std::int64_t>(s.k, order.k_blocks_per_stage * block_k));
  ASSERT_EQ(order.part_k_blocks, order.k_blocks);
  ASSERT_EQ(order.segments, 1);
  // Each block has a place, and clusters of four the room that they need.
  ASSERT_GE(order.clusters, 1);
  ASSERT_EQ(p.blocks(), order.clusters * c.cluster * c.cluster_split_k);
  ASSERT_LE(p.blocks(), cluster_blocks(c) > 2 ? sms - 16 : sms);
  ASSERT_LE(order.stream_k_tiles, order.tiles());
  ASSERT_LE(std::int64_t{order.clusters}, std::int64_t{order.whole_tiles()} +
                                              std::int64_t{order.stream_k_tiles} * order.stages());
  // All blocks of a cluster together read all rows of y that there are, into the room for them.
  // The swizzle repeats after 8 rows.
  const auto columns = static_cast<int>(std::min<std::int64_t>(y, c.block_n));
  ASSERT_EQ(p.multicast_rows, round_up(ceil_div(columns, c.cluster), 8));
  ASSERT_LE(p.multicast_rows * c.cluster, c.block_n);
  // The rows that a block receives for a stage.
  ASSERT_EQ(c.swap_ab ? b_tma_tile_rows(p) : a_tma_tile_rows(p), tile_rows(c));
  ASSERT_EQ(c.swap_ab ? a_tma_tile_rows(p) : b_tma_tile_rows(p), p.multicast_rows);
  ASSERT_LE(std::max(tile_rows(c), p.multicast_rows), 256) << "TMA takes no more";
  const int k_block_bytes = (tile_rows(c) + c.cluster * p.multicast_rows) * block_k * 2;
  ASSERT_EQ(stage_bytes(p), k_blocks_per_stage(c) * k_block_bytes);
  // Room for the sums of every block, where any are left.
  const int with_partials = order.stream_k_tiles > 0 ? p.blocks() : 0;
  ASSERT_EQ(partials_bytes(p), std::size_t{4} * with_partials * tile_rows(c) * c.block_n);
  each_read(p, p.blocks() - 1, [&](const cta_read& r) {
    const int place = (p.blocks() - 1) % cluster_blocks(c) % c.cluster;
    ASSERT_EQ(r.a_read.begin, r.a.begin + (c.swap_ab ? place * p.multicast_rows : 0));
  });
  ASSERT_EQ(read_together(p), c.swap_ab && order.n_tiles == 1 ? 128 : 256);
  ASSERT_TRUE(!c.swap_ab || order.n_tiles == 1 || c.block_n >= 64) << "weights are read again";
  if (c.cluster_split_k > 1) {
    ASSERT_EQ(order.clusters, order.tiles()) << "a cluster has one tile";
    ASSERT_EQ(order.stream_k_tiles, 0);
    ASSERT_GE(order.stages(), c.cluster_split_k);
  }
}

TEST(gemm_plans, fit_their_shapes) {
  std::set<std::string> used;
  each_round(200, [&](numbers& number) {
    constexpr std::int64_t rows[] = {1, 8, 16, 17, 32, 64, 65, 128, 300, 600, 2000, 5000, 16384};
    const gemm_shape shape{number(1, number.one_of(rows)), 8 * number(1, 1125),
                           8 * number(1, number(0, 3) == 0 ? 30 : 1125)};
    constexpr int counts[] = {2, 16, 33, 66, 114, 132};
    const int sms = number.one_of(counts);
    double last = 0;
    for (const gemm_plan& plan : gemm_plans(shape, sms)) {
      SCOPED_TRACE(
          fmt::format("{} x {} x {}, {} SMs: {}", shape.m, shape.n, shape.k, sms, plan.text()));
      expect_sound(plan, shape, sms);
      ASSERT_GE(plan.cycles, last) << "the best first";
      last = plan.cycles;
      ASSERT_EQ(std::ranges::count(gemm_kernels, plan.config), 1);
      used.insert(gemm_plan{plan.config, {}}.text());
    }
  });
  EXPECT_EQ(used.size(), std::size(gemm_kernels)) << "a configuration that is never used";
}

/// Rows between powers of two take no longer than the next one, nor much longer than their part of
/// it; and ranks that plan for themselves plan the same.
TEST(gemm_plans, predicted_times_have_no_jumps_between_powers_of_two) {
  constexpr std::int64_t weights[][2] = {{7168, 8192}, {3584, 14336}, {8192, 3584},
                                         {2880, 2880}, {2112, 7168},  {1536, 640}};
  each_round(100, [&](numbers& number) {
    const auto& [n, k] = number.one_of(weights);
    const std::int64_t m = number(1, std::int64_t{1} << number(0, 14));
    const auto next = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(m)));
    const gemm_plan plan = plans_by_model({m, n, k}, {num_sms}).front();
    const double most = plans_by_model({next, n, k}, {num_sms}).front().cycles;
    SCOPED_TRACE(fmt::format("{} x {} x {}: {}", m, n, k, plan.text()));
    EXPECT_LE(plan.cycles, 1.02 * most);
    if (m > 1024) {
      // From there on tiles are many, and it is multiplications that take the time.
      const double part = static_cast<double>(m) / static_cast<double>(next);
      EXPECT_LE(plan.cycles, 1.15 * part * most + 10'000);
    }
    const gemm_plan again = plans_by_model({m, n, k}, {num_sms}).front();
    EXPECT_EQ(again.config, plan.config);
    EXPECT_EQ(again.cycles, plan.cycles);
    EXPECT_EQ(again.text(), plan.text());
  });
}

/// Kernels count stages of tiles that are cut in 32 bits.
TEST(gemm_plans, have_no_more_tiles_than_can_be_counted) {
  int cut = 0;
  for (const std::int64_t k : {1 << 20, 1 << 26, 1 << 29, 3 << 28, (1 << 30) - 8}) {
    for (const std::int64_t m : {16, 100, 5000, 100'000}) {
      for (const gemm_plan& p : gemm_plans({m, 40'000, k}, 132)) {
        const tile_schedule& s = p.schedule;
        ASSERT_LE(std::int64_t{s.stream_k_tiles} * s.stages(), (std::int64_t{1} << 31) - 1)
            << m << " x " << k << ": " << p.text();
        cut += s.stream_k_tiles > 0 ? 1 : 0;
      }
    }
  }
  EXPECT_EQ(cut, 210);
}

TEST(gemm_plans, refuse_impossible_products) {
  constexpr std::int64_t most = std::int64_t{1} << 30;
  for (const gemm_shape& good : {gemm_shape{16, 64, 64}, {1, 8, 8}, {most - 1, 8, 8}})
    EXPECT_NO_THROW(gemm_plans(good, 132));
  const auto says = [&](const gemm_shape& shape, const char* reason) {
    const error e = untax_test::error_of([&] { (void)gemm_plans(shape, 132); });
    untax_test::expect_error(e, errc::invalid_argument, {reason});
  };
  for (const gemm_shape& none : {gemm_shape{0, 64, 64}, {16, 0, 64}, {16, 64, 0}, {-8, 64, 64}})
    says(none, "1 or more");
  for (const gemm_shape& large : {gemm_shape{most, 64, 64}, {16, most, 64}, {16, 64, most}})
    says(large, "below 2^30");
  for (const gemm_shape& odd : {gemm_shape{16, 60, 64},
                                {16, 64, 60},
                                {16, 1, 64},
                                {16, 64, 1},
                                {16, most - 1, 64},
                                {16, 64, most - 1}})
    says(odd, "multiples of 8");
  says({16, 64, 64, dtype::f32}, "bf16 or fp16");
}

TEST(gemm_plans, are_no_wider_than_twice_the_rows) {
  for (std::int64_t m = 1; m <= 300; ++m) {
    std::set<int> widths;
    std::set<int> numbers;
    for (const gemm_plan& p : gemm_plans({m, 3584, 8192}, num_sms))
      if (p.config.swap_ab) widths.insert(p.config.block_n);
    for (const tile_config& c : gemm_kernels)
      if (c.swap_ab && c.block_n > 128 && 2 * m > c.block_n) numbers.insert(c.block_n);
    for (const int width : widths) ASSERT_TRUE(width <= 128 || numbers.count(width) == 1) << m;
    for (const int width : numbers) ASSERT_EQ(widths.count(width), 1U) << width << " for " << m;
  }
}

TEST(gemm_plans, share_a_tile_in_a_cluster_if_each_block_has_a_stage) {
  for (const tile_config& c : gemm_kernels) {
    if (c.cluster_split_k == 1) continue;
    for (const int stages : {c.cluster_split_k - 1, c.cluster_split_k}) {
      const std::int64_t k = std::int64_t{stages} * k_blocks_per_stage(c) * block_k;
      const auto plans = gemm_plans({c.block_n, 512, k}, num_sms);
      EXPECT_EQ(std::ranges::count(plans, c, &gemm_plan::config),
                stages == c.cluster_split_k ? 1 : 0)
          << c.block_n << " by " << c.cluster_split_k << ", k " << k;
    }
  }
}

/// A GEMM's operands end with a tile, or within one, of which so much is read.
TEST(operand_ends, are_where_the_last_tile_is_not_full) {
  for (const std::int64_t m : {1, 16, 40, 128, 129, 200, 256, 300, 1000, 2048}) {
    for (const std::int64_t n : {64, 256, 520, 3584}) {
      for (const gemm_plan& p : gemm_plans({m, n, 1024}, 132)) {
        SCOPED_TRACE(p.text());
        const tile_config& c = p.config;
        const std::int64_t of_m = c.swap_ab ? n : m;
        const std::int64_t of_n = c.swap_ab ? m : n;
        const int rows = c.warpgroup_split_k ? 64 : 128;
        const auto m_end = m_end_of(p, of_m);
        ASSERT_EQ(m_end.begin, of_m / rows * rows);
        ASSERT_EQ(m_end.rows, of_m % rows);
        const auto n_end = n_end_of(p, of_n);
        if (of_n <= c.block_n || of_n % c.block_n == 0) {
          ASSERT_EQ(n_end.rows, 0);
          ASSERT_GE(n_end.begin, of_n) << "no row is behind it";
        } else {
          const auto left = static_cast<int>(of_n % c.block_n);
          ASSERT_EQ(n_end.begin, of_n - left);
          ASSERT_EQ(n_end.rows, round_up(ceil_div(left, c.cluster), 8))
              << "the blocks of a cluster read all of them, and hardly more";
        }
      }
    }
  }
}

TEST(gemm_costs, depend_on_the_l2_of_the_gpu) {
  EXPECT_EQ(costs_of(std::size_t{60} << 20), gemm_costs::h200);
  EXPECT_EQ(costs_of(std::size_t{50} << 20), gemm_costs::h100);
}

/// Of random problems, for costs.py, which compares them with the model that bench/gemm fits.
TEST(gemm_costs, equal_those_of_the_python_model) {
  constexpr int problems = 60;
  numbers number(9);
  std::string text;
  for (int i = 0; i < problems; ++i) {
    const gemm_shape s{number(1, std::int64_t{1} << number(0, 13)), 8 * number(1, 2000),
                       8 * number(1, 2000)};
    const gpu_model gpu{num_sms, i % 2 == 0 ? gemm_costs::h200 : gemm_costs::h100};
    const std::vector<gemm_plan> plans = plans_by_model(s, gpu);
    for (const gemm_plan& p : plans) {
      const tile_config& c = p.config;
      const tile_schedule& order = p.schedule;
      ASSERT_GT(p.cycles, 0);
      text += fmt::format("{} {} {} {} {} {} {} {:d} {} {:d} {} {} {} {} {} {} {:.17g}\n",
                          static_cast<int>(gpu.costs), s.m, s.n, s.k, c.block_n, c.cluster,
                          c.stages, c.swap_ab, c.epilogue_buffers, c.warpgroup_split_k,
                          c.cluster_split_k, order.m_tiles, order.n_tiles, order.clusters,
                          order.stream_k_tiles, order.raster_group, p.cycles);
    }
  }
  RecordProperty("plans", text);
}

}  // namespace

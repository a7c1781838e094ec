// Schedules of runs with fewer rows than their plan: they cover the rows with the plan's grid.
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "engines/gpu/gemm/cta_reads.hpp"
#include "engines/gpu/gemm/plan.hpp"
#include "engines/gpu/gemm/run_schedule.hpp"
#include "tests/plans/cases.hpp"

namespace {

using namespace plans_test;
using namespace untax;
using namespace untax::gpu;

int row_tiles_of(const tile_config& c, const tile_schedule& order) {
  return c.swap_ab ? order.n_tiles : order.m_tiles;
}
std::int64_t rows_of_tile(const tile_config& c) { return c.swap_ab ? c.block_n : cluster_rows(c); }

/// Every k-block of every tile is multiplied once, and every cluster has work.
void expect_whole(const gemm_plan& run) {
  std::map<int, int> k_blocks;
  for (int cluster = 0; cluster < run.schedule.clusters; ++cluster) {
    int works = 0;
    each_read(run, cluster * cluster_blocks(run.config), [&](const cta_read& r) {
      ++works;
      k_blocks[r.tile] += r.end - r.begin;
    });
    ASSERT_GT(works, 0) << "cluster " << cluster << " waits for nothing";
  }
  ASSERT_EQ(std::ssize(k_blocks), run.schedule.tiles());
  for (const auto& [tile, count] : k_blocks) ASSERT_EQ(count, run.schedule.k_blocks) << tile;
}

/// A run of so many rows by a plan for a shape.
void expect_fit(const gemm_plan& p, const row_capacity& capacity, std::int64_t rows) {
  const tile_config& c = p.config;
  gemm_plan run = p;
  run.schedule = schedule_of_rows(c, capacity, rows);
  const tile_schedule& order = run.schedule;
  ASSERT_EQ(run.blocks(), p.blocks()) << "a launch has the blocks of its plan";
  ASSERT_EQ(order.k_blocks, p.schedule.k_blocks);
  ASSERT_LE(row_tiles_of(c, order), row_tiles_of(c, p.schedule));
  ASSERT_GE(row_tiles_of(c, order) * rows_of_tile(c), rows);
  if (c.cluster_split_k > 1) {
    ASSERT_EQ(order.tiles(), p.schedule.tiles());
    return;
  }
  if (!capacity.cuts && p.schedule.stream_k_tiles == 0) ASSERT_EQ(order.stream_k_tiles, 0);
  if (order.stream_k_tiles > 0) ASSERT_LE(partials_bytes(run), partials_bytes(c, capacity));
  // Tiles behind the rows are there only where clusters would have none, or no whole one.
  const bool is_longer = (row_tiles_of(c, order) - 1) * rows_of_tile(c) >= rows;
  if (is_longer) ASSERT_LE(row_tiles_of(c, order), least_row_tiles(c, capacity, true));
  expect_whole(run);
}

TEST(run_schedules, cover_any_number_of_rows_with_the_grid_of_the_plan) {
  numbers random(5);
  int cut = 0;
  int shorter = 0;
  for (int i = 0; i < 120; ++i) {
    const gemm_shape shape{random(1, 3000), 8 * random(1, 500), 8 * random(1, 300)};
    const int sms = random.count(16, 132);
    const auto plans = gemm_plans(shape, sms);
    const gemm_plan& p = plans[random.below(plans.size())];
    const bool cuts = random(0, 1) == 1;
    const row_capacity capacity = capacity_of(p, cuts);
    for (int j = 0; j < 6; ++j) {
      const std::int64_t rows = j == 0 ? shape.m : random(1, shape.m);
      SCOPED_TRACE(fmt::format("{} of {} rows, n {}, k {}, {} SMs, cuts {}: {}", rows, shape.m,
                               shape.n, shape.k, sms, cuts, p.text()));
      expect_fit(p, capacity, rows);
      if (HasFatalFailure()) return;
      const tile_schedule order = schedule_of_rows(p.config, capacity, rows);
      if (j == 0) {
        EXPECT_EQ(order.stream_k_tiles, p.schedule.stream_k_tiles) << "the plan's own rows";
        EXPECT_EQ(order.tiles(), p.schedule.tiles());
      }
      cut += order.stream_k_tiles > 0 && p.schedule.stream_k_tiles == 0 ? 1 : 0;
      shorter += order.tiles() < p.schedule.tiles() ? 1 : 0;
    }
  }
  EXPECT_GT(cut, 10) << "plans of whole tiles, whose runs cut some";
  EXPECT_GT(shorter, 100);
}

TEST(run_schedules, take_less_than_the_most_rows) {
  numbers random(6);
  for (int i = 0; i < 200; ++i) {
    const gemm_shape shape{random(256, 8192), 8 * random(16, 2000), 8 * random(16, 1000)};
    const auto plans = gemm_plans(shape, 132);
    const gemm_plan& p = plans[random.below(plans.size())];
    if (p.config.cluster_split_k > 1) continue;
    const row_capacity capacity = capacity_of(p, true);
    const auto cycles = [&](const tile_schedule& order) {
      return schedule_of_run(p.config, capacity, row_tiles_of(p.config, order)).cycles;
    };
    const double most = cycles(capacity.most);
    for (int j = 0; j < 4; ++j)
      EXPECT_LE(cycles(schedule_of_rows(p.config, capacity, random(1, shape.m))), 1.001 * most)
          << p.text();
  }
}

TEST(run_schedules, leave_tiles_whole_where_bits_may_not_depend_on_rows) {
  const gemm_shape shape{.m = 2048, .n = 4096, .k = 4096, .type = dtype::bf16, .invariant = true};
  for (const gemm_plan& p : gemm_plans(shape, 132)) {
    if (p.config.cluster_split_k > 1) continue;
    const row_capacity capacity = capacity_of(p, false);
    EXPECT_EQ(partials_bytes(p.config, capacity), 0U);
    for (const std::int64_t rows : {1, 300, 1025, 2047})
      EXPECT_EQ(schedule_of_rows(p.config, capacity, rows).stream_k_tiles, 0) << p.text();
  }
}

}  // namespace

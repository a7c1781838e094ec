// Which cluster multiplies what, without a GPU: every k-block once, and sums that are left behind
// are picked up, once, by somebody who does not wait in a circle.
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "engines/gpu/gemm/plan.hpp"
#include "tests/plans/cases.hpp"

namespace {

using untax::gpu::gemm_plan;
using untax::gpu::gemm_plans;
using untax::gpu::tile_schedule;
using untax::gpu::tile_scheduler;
using untax::gpu::work_tile;

void expect_sound(const tile_scheduler& s, const std::string& what) {
  SCOPED_TRACE(what);
  std::vector<std::vector<int>> done(static_cast<std::size_t>(s.tiles()),
                                     std::vector<int>(static_cast<std::size_t>(s.k_blocks)));
  std::map<int, int> left;  // by cluster, the tile whose sums it left behind
  std::set<int> picked;
  for (int cluster = 0; cluster < s.clusters; ++cluster) {
    for (work_tile w = s.first(cluster); w.valid(); w = s.next(cluster, w)) {
      ASSERT_LT(w.begin, w.end);
      for (int i = w.begin; i < w.end; ++i)
        ++done[static_cast<std::size_t>(w.tile)][static_cast<std::size_t>(i)];
      if (s.stores_partial(w)) {
        ASSERT_EQ(left.count(cluster), 0U) << "there is room for one";
        left[cluster] = w.tile;
      } else {
        for (int helper = s.first_contributor(cluster, w); helper < cluster; ++helper) {
          ASSERT_EQ(left.count(helper), 1U) << helper;
          ASSERT_EQ(left[helper], w.tile);
          ASSERT_TRUE(picked.insert(helper).second);
        }
      }
    }
  }
  EXPECT_EQ(picked.size(), left.size());
  for (const auto& tile : done) {
    for (const int times : tile) ASSERT_EQ(times, 1);
  }
  std::set<std::pair<int, int>> places;
  for (int tile = 0; tile < s.tiles(); ++tile) {
    const auto at = s.at(tile);
    ASSERT_LT(at.m, s.m_tiles);
    ASSERT_LT(at.n, s.n_tiles);
    ASSERT_TRUE(places.insert({at.m, at.n}).second);
  }
}

/// Tiles of a segment come before those of the next one, and in raster groups: before the first
/// tile below a raster group all columns of it have come.
void expect_segments(const tile_scheduler& s) {
  const int width = s.m_tiles / s.segments;
  int last_segment = 0;
  int last_raster_group = 0;
  int last_n = 0;
  for (int tile = 0; tile < s.tiles(); ++tile) {
    const auto at = s.at(tile);
    const int segment = at.m / width;
    ASSERT_GE(segment, last_segment);
    const int raster_group = s.n_tiles == 1 ? 0 : at.m % width / s.raster_group;
    if (segment == last_segment) {
      ASSERT_GE(raster_group, last_raster_group);
      ASSERT_TRUE(raster_group > last_raster_group || at.n >= last_n);
    }
    last_segment = segment;
    last_raster_group = raster_group;
    last_n = at.n;
  }
}

/// Blocks of a cluster that share its tile read every k-block once, and each of them some, whole
/// stages at a time.
void expect_splits(const tile_schedule& s, int splits, const std::string& what) {
  SCOPED_TRACE(what);
  std::vector<int> read(static_cast<std::size_t>(s.k_blocks));
  for (int split = 0; split < splits; ++split) {
    int mine = 0;
    for (work_tile w = s.first_of_split(7, split, splits); w.valid(); w = s.next_of_split(w)) {
      ASSERT_EQ(w.tile, 7);
      ASSERT_LT(w.begin, w.end);
      ASSERT_EQ(w.begin % s.k_blocks_per_stage, 0);
      for (int i = w.begin; i < w.end; ++i, ++mine) ++read[static_cast<std::size_t>(i)];
    }
    ASSERT_GT(mine, 0) << "split " << split;
    ASSERT_EQ(mine % s.k_blocks_per_stage, 0) << "split " << split;
  }
  for (const int times : read) ASSERT_EQ(times, 1);
}

TEST(gemm_schedule, does_every_k_block_once) {
  for (const unsigned seed : plans_test::seeds()) {
    plans_test::numbers number(seed);
    for (int round = 0; round < 60; ++round) {
      const untax::gpu::gemm_shape shape{number(1, number(0, 1) == 0 ? 300 : 5000),
                                         8 * number(1, 1125), 8 * number(1, 1125)};
      const int num_sms = number(0, 1) == 0 ? 132 : static_cast<int>(number(2, 140));
      for (const gemm_plan& plan : gemm_plans(shape, num_sms)) {
        tile_schedule schedule = plan.schedule;
        expect_sound(tile_scheduler(schedule), plan.text() + ", seed " + std::to_string(seed));
        if (plan.config.cluster_split_k > 1) {
          EXPECT_EQ(schedule.clusters, schedule.tiles());
          expect_splits(schedule, plan.config.cluster_split_k, plan.text());
        }
        schedule.segments = static_cast<int>(number(2, 8));
        schedule.m_tiles *= schedule.segments;
        expect_sound(tile_scheduler(schedule),
                     "in segments: " + plan.text() + ", seed " + std::to_string(seed));
        expect_segments(tile_scheduler(schedule));
      }
    }
  }
}

TEST(gemm_schedule, splits_are_each_k_block_once) {
  for (const unsigned seed : plans_test::seeds()) {
    plans_test::numbers number(seed);
    for (int round = 0; round < 500; ++round) {
      const auto splits = static_cast<int>(number(2, 4));
      tile_schedule s;
      s.k_blocks_per_stage = static_cast<int>(number(1, 2));
      s.k_blocks = s.k_blocks_per_stage * static_cast<int>(number(splits, 300));
      s.part_k_blocks = s.k_blocks_per_stage *
                        static_cast<int>(number(splits, s.k_blocks / s.k_blocks_per_stage));
      expect_splits(s, splits,
                    fmt::format("{} splits of {} k-blocks, {} together, parts of {}, seed {}",
                                splits, s.k_blocks, s.k_blocks_per_stage, s.part_k_blocks, seed));
    }
  }
}

/// Shares of what is cut differ by one unit at most, and a cluster has them last.
TEST(gemm_schedule, shares_are_equal) {
  for (const unsigned seed : plans_test::seeds()) {
    plans_test::numbers number(seed);
    for (int round = 0; round < 200; ++round) {
      tile_schedule s;
      s.m_tiles = static_cast<int>(number(1, 12));
      s.n_tiles = static_cast<int>(number(1, 5));
      s.k_blocks_per_stage = static_cast<int>(number(1, 2));
      s.k_blocks = s.k_blocks_per_stage * static_cast<int>(number(1, 90));
      s.part_k_blocks = s.k_blocks;
      s.raster_group = static_cast<int>(number(1, 9));
      s.stream_k_tiles = static_cast<int>(number(1, s.tiles()));
      s.clusters =
          static_cast<int>(number(1, s.stream_k_tiles * (s.k_blocks / s.k_blocks_per_stage)));
      const tile_scheduler order(s);
      std::vector<int> shares;
      for (int cluster = 0; cluster < s.clusters; ++cluster) {
        int mine = 0;
        bool cut = false;
        for (work_tile w = order.first(cluster); w.valid(); w = order.next(cluster, w)) {
          ASSERT_TRUE(!cut || w.tile >= s.whole_tiles()) << "whole tiles come first";
          cut = w.tile >= s.whole_tiles();
          if (cut) mine += (w.end - w.begin) / s.k_blocks_per_stage;
        }
        shares.push_back(mine);
      }
      const int all = s.stream_k_tiles * (s.k_blocks / s.k_blocks_per_stage);
      for (const int share : shares) {
        ASSERT_GE(share, all / s.clusters);
        ASSERT_LE(share, (all + s.clusters - 1) / s.clusters);
      }
      expect_sound(order, fmt::format("seed {}, round {}", seed, round));
    }
  }
}

}  // namespace

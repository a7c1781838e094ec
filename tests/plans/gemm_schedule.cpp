// The schedule of clusters, without a GPU: every k-block is multiplied once, and every stream-K
// partial sum is consumed exactly once, without a cyclic wait.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "engines/gpu/gemm/plan.hpp"
#include "tests/plans/cases.hpp"

namespace {

using namespace plans_test;
using namespace untax::gpu;

void expect_sound(const tile_schedule& schedule) {
  const tile_scheduler s(schedule);
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
  for (const auto& tile : done)
    for (const int times : tile) ASSERT_EQ(times, 1);
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
void expect_segments(const tile_schedule& schedule) {
  const tile_scheduler s(schedule);
  const int width = s.m_tiles / s.segments;
  std::tuple last(0, 0, 0);
  for (int tile = 0; tile < s.tiles(); ++tile) {
    const auto at = s.at(tile);
    const std::tuple now(at.m / width, at.m % width / s.raster_group, at.n);
    ASSERT_GE(now, last);
    last = now;
  }
}

/// Blocks of a cluster that share its tile read every k-block once, and each of them some, whole
/// stages at a time.
void expect_splits(const tile_schedule& s, int splits) {
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
  each_round(60, [](numbers& number) {
    const gemm_shape shape{number(1, number(0, 1) == 0 ? 300 : 5000), 8 * number(1, 1125),
                           8 * number(1, 1125)};
    const int num_sms = number(0, 1) == 0 ? 132 : number.count(2, 140);
    for (const gemm_plan& plan : gemm_plans(shape, num_sms)) {
      SCOPED_TRACE(plan.text());
      tile_schedule schedule = plan.schedule;
      expect_sound(schedule);
      if (plan.config.cluster_split_k > 1) {
        EXPECT_EQ(schedule.clusters, schedule.tiles());
        expect_splits(schedule, plan.config.cluster_split_k);
      }
      schedule.segments = number.count(2, 8);
      schedule.m_tiles *= schedule.segments;
      expect_sound(schedule);
      expect_segments(schedule);
    }
  });
}

TEST(gemm_schedule, splits_have_each_k_block_once) {
  each_round(500, [](numbers& number) {
    const int splits = number.count(2, 4);
    tile_schedule s;
    s.k_blocks_per_stage = number.count(1, 2);
    const int stages = number.count(splits, 300);
    s.k_blocks = s.k_blocks_per_stage * stages;
    s.part_k_blocks = s.k_blocks_per_stage * number.count(splits, stages);
    SCOPED_TRACE(fmt::format("{} splits of {} k-blocks, {} together, parts of {}", splits,
                             s.k_blocks, s.k_blocks_per_stage, s.part_k_blocks));
    expect_splits(s, splits);
  });
}

/// Shares of what is cut differ by one unit at most, and a cluster has them last.
TEST(gemm_schedule, shares_are_equal) {
  each_round(200, [](numbers& number) {
    tile_schedule s;
    s.m_tiles = number.count(1, 12);
    s.n_tiles = number.count(1, 5);
    s.k_blocks_per_stage = number.count(1, 2);
    s.k_blocks = s.k_blocks_per_stage * number.count(1, 90);
    s.part_k_blocks = s.k_blocks;
    s.raster_group = number.count(1, 9);
    s.stream_k_tiles = number.count(1, s.tiles());
    const int stages = s.stream_k_tiles * s.stages();
    s.clusters = number.count(1, stages);
    const tile_scheduler order(s);
    for (int cluster = 0; cluster < s.clusters; ++cluster) {
      int share = 0;
      bool cut = false;
      for (work_tile w = order.first(cluster); w.valid(); w = order.next(cluster, w)) {
        ASSERT_TRUE(!cut || w.tile >= s.whole_tiles()) << "whole tiles come first";
        cut = w.tile >= s.whole_tiles();
        if (cut) share += s.stages_of(w.end - w.begin);
      }
      ASSERT_GE(share, stages / s.clusters);
      ASSERT_LE(share, (stages + s.clusters - 1) / s.clusters);
    }
    expect_sound(s);
  });
}

/// Of products so deep that a share's number times all stages takes more than 32 bits.
TEST(gemm_schedule, shares_are_equal_where_numbers_are_large) {
  tile_schedule s;
  s.m_tiles = 40;
  s.n_tiles = 5;
  s.k_blocks = s.part_k_blocks = 200'000;
  s.stream_k_tiles = s.tiles();
  s.clusters = 131;
  const tile_scheduler order(s);
  const int k_blocks = s.stream_k_tiles * s.k_blocks;
  for (int cluster = 0; cluster < s.clusters; ++cluster) {
    int share = 0;
    for (work_tile w = order.first(cluster); w.valid(); w = order.next(cluster, w))
      share += w.end - w.begin;
    ASSERT_GE(share, k_blocks / s.clusters);
    ASSERT_LE(share, k_blocks / s.clusters + 1);
  }
}

/// Ranges of k follow each other from wherever work begins, and the last one ends with it.
TEST(gemm_schedule, ranges_cover_all_k_blocks) {
  each_round(500, [](numbers& number) {
    tile_schedule s;
    s.k_blocks_per_stage = number.count(1, 2);
    s.range_k_blocks = number.count(1, 40);
    const int range = s.range_k_blocks * s.k_blocks_per_stage;
    int begin = range * number.count(0, 9);
    const int end = begin + s.k_blocks_per_stage * number.count(1, 300);
    SCOPED_TRACE(fmt::format("[{}, {}) in ranges of {}", begin, end, range));
    while (begin < end) {
      const int sums = s.sums_end(begin, end);
      ASSERT_EQ(sums, std::min(begin + range, end));
      begin = sums;
    }
    s.range_k_blocks = 0;
    ASSERT_EQ(s.sums_end(0, end), end);
  });
}

/// A stage has k-blocks that follow each other, or the next one of each of two ranges.
TEST(gemm_schedule, stages_may_have_k_blocks_of_two_ranges) {
  each_round(200, [](numbers& number) {
    tile_schedule s;
    s.k_blocks_per_stage = 2;
    s.range_k_blocks = number.count(1, 40);
    const int begin = 2 * s.range_k_blocks * number.count(0, 9);
    const stage_order pairs = s.stages_from(begin);
    tile_schedule one_range = s;
    one_range.range_k_blocks = 0;
    const stage_order in_turn = one_range.stages_from(begin);
    for (int stage = 0; stage < s.range_k_blocks; ++stage) {
      for (int place = 0; place < 2; ++place) {
        ASSERT_EQ(pairs.at(begin + 2 * stage, place), begin + stage + place * s.range_k_blocks);
        ASSERT_EQ(in_turn.at(begin + 2 * stage, place), begin + 2 * stage + place);
      }
    }
  });
}

TEST(gemm_schedule, knows_the_most_k_blocks_of_a_cluster) {
  EXPECT_EQ(tile_scheduler().most_k_blocks(), 1) << "nothing to divide by is zero";
  tile_schedule s;
  s.m_tiles = 5;
  s.n_tiles = 1;
  s.k_blocks = s.part_k_blocks = 7;
  s.clusters = 4;
  EXPECT_EQ(tile_scheduler(s).most_k_blocks(), 14) << "the first cluster has two tiles";
  s.m_tiles = 3;
  s.clusters = 3;
  EXPECT_EQ(tile_scheduler(s).most_k_blocks(), 7);
  s.stream_k_tiles = 3;
  s.clusters = 2;
  EXPECT_EQ(tile_scheduler(s).most_k_blocks(), 11) << "of 21";
}

}  // namespace

// Which cluster multiplies what, without a GPU: every slice once, and sums that are left behind are
// picked up, once, by somebody who does not wait in a circle.
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "engines/sm90/gemm/plan.hpp"
#include "tests/plans/cases.hpp"

namespace {

using untax::sm90::gemm_plan;
using untax::sm90::gemm_plans;
using untax::sm90::tile_schedule;
using untax::sm90::tile_work;

void expect_sound(const tile_schedule& s, const std::string& what) {
  SCOPED_TRACE(what);
  std::vector<std::vector<int>> done(static_cast<std::size_t>(s.tiles()),
                                     std::vector<int>(static_cast<std::size_t>(s.slices)));
  std::map<int, int> left;  // by cluster, the tile whose sums it left behind
  std::set<int> picked;
  for (int cluster = 0; cluster < s.clusters; ++cluster) {
    for (tile_work w = s.first(cluster); w.valid(); w = s.next(cluster, w)) {
      ASSERT_LT(w.begin, w.end);
      for (int i = w.begin; i < w.end; ++i)
        ++done[static_cast<std::size_t>(w.tile)][static_cast<std::size_t>(i)];
      if (s.leaves_sums(w)) {
        ASSERT_EQ(left.count(cluster), 0U) << "there is room for one";
        left[cluster] = w.tile;
      } else {
        for (int helper = s.first_helper(cluster, w); helper < cluster; ++helper) {
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
    ASSERT_LT(s.x_of(tile), s.x_tiles);
    ASSERT_LT(s.y_of(tile), s.y_tiles);
    ASSERT_TRUE(places.insert({s.x_of(tile), s.y_of(tile)}).second);
  }
}

/// Tiles of a segment come before those of the next one, and in bands: before the first tile below
/// a band all columns of it have come.
void expect_segments(const tile_schedule& s) {
  const int width = s.x_tiles / s.segments;
  int last_segment = 0;
  int last_band = 0;
  int last_y = 0;
  for (int tile = 0; tile < s.tiles(); ++tile) {
    const auto at = s.at(tile);
    const int segment = at.x / width;
    ASSERT_GE(segment, last_segment);
    const int band = s.y_tiles == 1 ? 0 : at.x % width / s.band;
    if (segment == last_segment) {
      ASSERT_GE(band, last_band);
      ASSERT_TRUE(band > last_band || at.y >= last_y);
    }
    last_segment = segment;
    last_band = band;
    last_y = at.y;
  }
}

/// Blocks of a cluster that share its tile read every slice once, and each of them some, whole
/// stages at a time.
void expect_pieces(const tile_schedule& s, int pieces, const std::string& what) {
  SCOPED_TRACE(what);
  std::vector<int> read(static_cast<std::size_t>(s.slices));
  for (int piece = 0; piece < pieces; ++piece) {
    int mine = 0;
    for (tile_work w = s.first_of_piece(7, piece, pieces); w.valid(); w = s.next_of_piece(w)) {
      ASSERT_EQ(w.tile, 7);
      ASSERT_EQ(w.begin % s.together, 0);
      for (int i = w.begin; i < w.end; ++i, ++mine) ++read[static_cast<std::size_t>(i)];
    }
    ASSERT_GT(mine, 0) << "piece " << piece;
    ASSERT_EQ(mine % s.together, 0) << "piece " << piece;
  }
  for (const int times : read) ASSERT_EQ(times, 1);
}

TEST(gemm_schedule, does_every_slice_once) {
  for (const unsigned seed : plans_test::seeds()) {
    plans_test::numbers number(seed);
    for (int round = 0; round < 60; ++round) {
      const untax::sm90::gemm_shape shape{number(1, number(0, 1) == 0 ? 300 : 5000),
                                          8 * number(1, 1125), 8 * number(1, 1125)};
      const int processors = number(0, 1) == 0 ? 132 : static_cast<int>(number(2, 140));
      for (const gemm_plan& plan : gemm_plans(shape, processors)) {
        tile_schedule schedule = plan.schedule;
        expect_sound(schedule, plan.text() + ", seed " + std::to_string(seed));
        if (plan.config.pieces > 1) {
          EXPECT_EQ(schedule.clusters, schedule.tiles());
          expect_pieces(schedule, plan.config.pieces, plan.text());
        }
        schedule.segments = static_cast<int>(number(2, 8));
        schedule.x_tiles *= schedule.segments;
        expect_sound(schedule, "in segments: " + plan.text() + ", seed " + std::to_string(seed));
        expect_segments(schedule);
      }
    }
  }
}

TEST(gemm_schedule, pieces_are_each_slice_once) {
  for (const unsigned seed : plans_test::seeds()) {
    plans_test::numbers number(seed);
    for (int round = 0; round < 500; ++round) {
      const auto pieces = static_cast<int>(number(2, 4));
      tile_schedule s;
      s.together = static_cast<int>(number(1, 2));
      s.slices = s.together * static_cast<int>(number(pieces, 300));
      s.part_slices = s.together * static_cast<int>(number(pieces, s.slices / s.together));
      expect_pieces(s, pieces,
                    fmt::format("{} pieces of {} slices, {} together, parts of {}, seed {}", pieces,
                                s.slices, s.together, s.part_slices, seed));
    }
  }
}

/// Shares of what is cut differ by one unit at most, and a cluster has them last.
TEST(gemm_schedule, shares_are_equal) {
  for (const unsigned seed : plans_test::seeds()) {
    plans_test::numbers number(seed);
    for (int round = 0; round < 200; ++round) {
      tile_schedule s;
      s.x_tiles = static_cast<int>(number(1, 12));
      s.y_tiles = static_cast<int>(number(1, 5));
      s.together = static_cast<int>(number(1, 2));
      s.slices = s.together * static_cast<int>(number(1, 90));
      s.part_slices = s.slices;
      s.band = static_cast<int>(number(1, 9));
      s.streamed = static_cast<int>(number(1, s.tiles()));
      s.clusters = static_cast<int>(number(1, s.streamed * (s.slices / s.together)));
      std::vector<int> shares;
      for (int cluster = 0; cluster < s.clusters; ++cluster) {
        int mine = 0;
        bool cut = false;
        for (tile_work w = s.first(cluster); w.valid(); w = s.next(cluster, w)) {
          ASSERT_TRUE(!cut || w.tile >= s.whole_tiles()) << "whole tiles come first";
          cut = w.tile >= s.whole_tiles();
          if (cut) mine += (w.end - w.begin) / s.together;
        }
        shares.push_back(mine);
      }
      const int all = s.streamed * (s.slices / s.together);
      for (const int share : shares) {
        ASSERT_GE(share, all / s.clusters);
        ASSERT_LE(share, (all + s.clusters - 1) / s.clusters);
      }
      expect_sound(s, fmt::format("seed {}, round {}", seed, round));
    }
  }
}

TEST(gemm_schedule, weights_are_shared_where_rows_are_few) {
  for (const int processors : {132, 114}) {
    const gemm_plan plan = gemm_plans({16, 7168, 8192}, processors).front();
    EXPECT_TRUE(plan.config.swapped) << plan.text();
    EXPECT_EQ(plan.config.columns, 16) << plan.text();
    EXPECT_GT(plan.schedule.clusters * 10, processors * 8) << plan.text();
  }
}

}  // namespace

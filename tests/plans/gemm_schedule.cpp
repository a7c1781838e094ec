// Which cluster multiplies what, without a GPU: every slice once, and sums that are left behind are
// picked up, once, by somebody who does not wait in a circle.
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "engines/sm90/gemm/plan.hpp"

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
  const unsigned seed = std::random_device{}();
  std::mt19937_64 engine(seed);
  const auto number = [&](std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(engine);
  };
  for (int round = 0; round < 300; ++round) {
    const untax::sm90::gemm_shape shape{number(1, 5000), 8 * number(1, 1125), 8 * number(1, 1125)};
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
    }
  }
}

TEST(gemm_schedule, pieces_are_each_slice_once) {
  const unsigned seed = std::random_device{}();
  std::mt19937_64 engine(seed);
  const auto number = [&](int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(engine);
  };
  for (int round = 0; round < 1000; ++round) {
    const int pieces = number(2, 4);
    tile_schedule s;
    s.together = number(1, 2);
    s.slices = s.together * number(pieces, 300);
    s.part_slices = s.together * number(pieces, s.slices / s.together);
    expect_pieces(s, pieces,
                  fmt::format("{} pieces of {} slices, {} together, parts of {}, seed {}", pieces,
                              s.slices, s.together, s.part_slices, seed));
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

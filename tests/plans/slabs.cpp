// Slabs that ranks send each other sums in, and who owns which rows of them: what peers and epochs
// tell apart, and what both ends of a word have to count alike.
#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "engines/gpu/gemm/config.hpp"
#include "engines/gpu/gemm/plan.hpp"
#include "engines/gpu/gemm/sinks/sum_fragments.hpp"
#include "tests/plans/cases.hpp"

namespace {

using namespace untax;
using gpu::peer_slabs;
using gpu::sum_fragments;

TEST(slabs, are_one_of_each_rank_in_two_sets) {
  for (int ranks = 1; ranks <= 8; ++ranks) {
    const peer_slabs how{.own_rank = 0, .ranks = ranks};
    std::set<int> numbers;
    std::set<int> counters;
    for (const std::uint64_t epoch : {7U, 8U}) {
      for (int peer = 0; peer < ranks; ++peer) {
        const room r = how.slab(peer, 0, epoch);
        EXPECT_EQ(r.producer, peer);
        EXPECT_EQ(r.consumer, 0);
        EXPECT_EQ(r.number, how.slab_of(peer, epoch));
        EXPECT_LT(r.number, 2 * ranks) << "what the inbox has room for";
        numbers.insert(r.number);
        // By which an owner says that its words are put back, at the rank that sends there.
        counters.insert(how.slab(0, peer, epoch).free);
        // Two epochs later it is the same slab, used once more.
        const room next = how.slab(peer, 0, epoch + 2);
        EXPECT_EQ(next.number, r.number);
        EXPECT_EQ(next.free, r.free);
        EXPECT_EQ(next.use, r.use + 1);
      }
    }
    EXPECT_EQ(numbers.size(), static_cast<std::size_t>(2 * ranks));
    EXPECT_EQ(counters.size(), static_cast<std::size_t>(2 * ranks));
    // And one of each owner that says that its results have landed, in every epoch.
    for (int owner = 0; owner < ranks; ++owner) {
      const room landed = how.landed(owner, ranks - 1, 9);
      EXPECT_EQ(landed.producer, owner);
      EXPECT_EQ(landed.consumer, ranks - 1);
      EXPECT_EQ(landed.number, landed.ready);
      EXPECT_EQ(landed.use, 9U);
      EXPECT_EQ(how.landed(owner, 0, 10).ready, landed.ready);
      counters.insert(landed.ready);
    }
    EXPECT_EQ(counters.size(), static_cast<std::size_t>(3 * ranks));
    EXPECT_EQ(*counters.begin(), 0);
    EXPECT_EQ(*counters.rbegin() + 1, how.counters());
  }
}

TEST(slabs, owners_have_all_rows_once) {
  for (const unsigned seed : plans_test::seeds()) {
    plans_test::numbers number(seed);
    for (int round = 0; round < 300; ++round) {
      sum_fragments how;
      how.ranks = static_cast<int>(number(1, 8));
      how.m = static_cast<int>(number(1, round % 2 == 0 ? 40 : 700));
      how.tile_m = static_cast<int>(16 * number(1, 8));
      how.everywhere = number(0, 3) == 0;
      SCOPED_TRACE(testing::Message() << how.m << " rows, " << how.ranks << " ranks, tiles of "
                                      << how.tile_m << ", seed " << seed);
      int end = 0;
      int most = 0;
      for (int owner = 0; owner < how.ranks; ++owner) {
        ASSERT_EQ(how.first_row(owner), how.everywhere ? 0 : end) << "where the owner before ends";
        ASSERT_LE(how.first_row(owner), how.end_row(owner));
        end = how.end_row(owner);
        std::set<int> tiles;
        for (int row = how.first_row(owner); row < end; ++row) tiles.insert(row / how.tile_m);
        ASSERT_EQ(how.tiles_of(owner), static_cast<int>(tiles.size()));
        if (!tiles.empty()) {
          ASSERT_EQ(how.first_tile(owner), *tiles.begin());
        }
        most = std::max(most, how.tiles_of(owner));
        // Rows from some row on, of which the owner has one, or not.
        for (int row = 0; row < how.m + 2; ++row) {
          for (const int rows : {1, 8, 16}) {
            bool some = false;
            for (int i = row; i < row + rows; ++i) some |= i >= how.first_row(owner) && i < end;
            if (how.first_row(owner) == end) continue;  // who owns nothing is not asked
            ASSERT_EQ(how.touches(owner, row, rows), some) << rows << " rows from " << row;
          }
        }
      }
      ASSERT_EQ(end, how.m);
      ASSERT_EQ(how.most_tiles(), most);
    }
  }
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

TEST(first_plans, of_tiles_and_sums) {
  const gpu::tile_config c;
  EXPECT_EQ(c, (gpu::tile_config{256, 2, 4, false, 2, false, 1}));
  const sum_fragments sums;
  EXPECT_EQ(sums.own_rank + sums.m + sums.n + sums.first_row_tile, 0);
  EXPECT_FALSE(sums.everywhere || sums.halves || sums.swap_ab || sums.passes_on);
  EXPECT_EQ(sums.ranks * sums.row_tiles * sums.col_tiles * sums.raster_rows, 1);
  EXPECT_EQ(sums.tile_m, 128);
  EXPECT_EQ(sums.tile_n, 256);
  EXPECT_EQ(sums.groups, 2);
  EXPECT_EQ(sums.parts, 32);
  EXPECT_EQ(gpu::sum_fragment{}, (gpu::sum_fragment{0, 0, 0, 0, 0}));
}

}  // namespace

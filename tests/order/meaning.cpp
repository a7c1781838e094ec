// The meaning of orders: the place of each block, and its successor.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <random>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <untax/order/attention.hpp>
#include <untax/order/curves.hpp>
#include <untax/order/raster.hpp>
#include <untax/order/rectangles.hpp>
#include <untax/order/remap.hpp>
#include <untax/order/steps.hpp>

#include "engines/gpu/gemm/schedule.hpp"

namespace untax::order {
namespace {

// Orders are values that the compiler can work with.
static_assert(full_remap(12, 8).block(8) == 1);
static_assert(through{hilbert{4, 4}}.position(5) == 2);
static_assert(swizzled_head_first({1, 16, 1, 4}, 8).block(8) == 1);

TEST(orders, a_full_remap_gives_each_domain_one_run) {
  for (const int blocks : {1, 5, 8, 41, 1000, 4332}) {
    for (const int domains : {1, 2, 3, 8}) {
      const chunked_remap remap = full_remap(blocks, domains);
      std::map<int, std::set<int>> of;
      for (int p = 0; p < blocks; ++p) of[p % domains].insert(remap.block(p));
      int before = -1;
      for (const auto& [domain, mine] : of) {
        EXPECT_EQ(*mine.begin(), before + 1);
        EXPECT_EQ(*mine.rbegin() - *mine.begin() + 1, static_cast<int>(mine.size()));
        before = *mine.rbegin();
      }
    }
  }
}

TEST(orders, a_chunk_runs_in_one_domain) {
  const chunked_remap remap{1000, 8, 25};
  for (int block = 0; block < 1000; ++block)
    EXPECT_EQ(remap.position(block) % 8, block / 25 % 8) << block;
}

TEST(orders, a_head_runs_in_one_domain) {
  // Where domains divide heads, as the paper's figures have it.
  const attention_grid g{2, 16, 1, 12};
  for (int p = 0; p < g.size(); ++p) {
    const int head = naive_block_first(g).block(p) / g.blocks % 16;
    EXPECT_EQ(head % 8, p % 8) << "block-first keeps heads apart by their number";
    const int swizzled = swizzled_block_first(g, 8).block(p) / g.blocks % 16;
    EXPECT_EQ(swizzled / 2, p % 8) << "swizzled: heads that follow each other";
    const int first = swizzled_head_first(g, 8).block(p) / g.blocks;
    EXPECT_EQ(first / 4, p % 8) << "heads of both batches, four to a domain";
  }
}

TEST(orders, hilbert_goes_from_neighbour_to_neighbour) {
  for (const int side : {2, 4, 16, 64}) {
    const hilbert curve{side, side};
    for (int p = 1; p < side * side; ++p) {
      const cell a = curve.at(p - 1);
      const cell b = curve.at(p);
      ASSERT_EQ(std::abs(a.x - b.x) + std::abs(a.y - b.y), 1) << side << ", " << p;
    }
  }
}

TEST(orders, a_snake_goes_on_where_the_band_before_ended) {
  const snake way{6, 5, 2};
  for (int p = 10; p < 30; p += 10) EXPECT_EQ(way.at(p - 1).y, way.at(p).y);
}

TEST(orders, diagonals_come_after_the_blocks_that_they_need) {
  const diagonals way{7, 4};
  for (int y = 0; y < 4; ++y) {
    for (int x = 0; x < 7; ++x) {
      if (x > 0) {
        EXPECT_LT(way.position({x - 1, y}), way.position({x, y}));
      }
      if (y > 0) {
        EXPECT_LT(way.position({x, y - 1}), way.position({x, y}));
      }
    }
  }
}

TEST(orders, rectangles_come_one_after_the_other) {
  const rectangles way{10, 9, 2, 3, 4};
  std::set<std::pair<int, int>> left;
  std::pair<int, int> current{-1, -1};
  for (int p = 0; p < 90; ++p) {
    const cell where = way.at(p);
    const std::pair<int, int> in{where.x / 5, where.y / 3};
    if (in != current) {
      ASSERT_TRUE(left.insert(in).second) << p;
    }
    current = in;
  }
  EXPECT_EQ(left.size(), 6U);
}

TEST(orders, longest_first_begins_with_the_last_rows) {
  const attention_grid g{2, 3, 2, 5};
  const auto order = longest_first(naive_group_first(g), g);
  EXPECT_EQ(order.block(0), 4);
  EXPECT_EQ(order.block(1), 9) << "the other head that has the same keys";
  EXPECT_EQ(order.block(2), 3);
}

TEST(orders, sawtooth_turns_round) {
  EXPECT_EQ((step_order{8, direction::sawtooth, 0}.block(7)), 7);
  EXPECT_EQ((step_order{8, direction::sawtooth, 1}.block(0)), 7);
  EXPECT_EQ((step_order{8, direction::staggered, 3, 2}.block(0)), 6);
  EXPECT_EQ((step_order{8, direction::joined, 5, 2}.block(0)), 5);
  EXPECT_EQ((step_order{8, direction::joined, 5, 2}.block(3)), 0);
}

TEST(orders, the_raster_of_the_gemm_kernels_is_one_of_them) {
  const std::uint64_t seed = std::random_device()();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937_64 random(seed);
  for (int i = 0; i < 200; ++i) {
    gpu::tile_schedule schedule;
    schedule.segments = 1 + static_cast<int>(random() % 4);
    schedule.m_tiles = schedule.segments * (1 + static_cast<int>(random() % 30));
    schedule.n_tiles = 1 + static_cast<int>(random() % 60);
    schedule.raster_group = 1 + static_cast<int>(random() % 12);
    schedule.clusters = 1;
    schedule.k_blocks = 1;
    const banded raster{schedule.m_tiles, schedule.n_tiles, schedule.raster_group,
                        schedule.segments};
    const gpu::tile_scheduler order(schedule);
    for (int tile = 0; tile < schedule.tiles(); ++tile) {
      const auto where = order.at(tile);
      ASSERT_EQ(raster.at(tile), (cell{where.m, where.n})) << tile;
    }
  }
}

TEST(meaning, a_divider_gives_the_quotient_of_integers) {
  const std::uint64_t seed = std::random_device()();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937_64 random(seed);
  // Of any number of bits.
  const auto drawn = [&] { return static_cast<int>((random() >> 33) >> (random() % 31)); };
  constexpr int most = std::numeric_limits<int>::max();
  for (int i = 0; i < 100'000; ++i) {
    const int d = std::max(drawn(), 1);
    const int some = drawn();
    for (const int n : {some, some / d * d, std::max(some / d * d - 1, 0), most - drawn(), d, d - 1,
                        most / d * d, most / d * d - 1})
      ASSERT_EQ(divider(d).quotient(n), n / d) << n << " by " << d;
  }
  for (int d = 1; d < 300; ++d)
    for (int n = 0; n < 3000; ++n) ASSERT_EQ(divider(d).quotient(n), n / d);
  for (int d = 1; d < 3000; ++d) {
    for (const int n :
         {0, 1, d - 1, d, d + 1, 7 * d - 1, 7 * d, 1000003, most, most / d * d, most / d * d - 1})
      ASSERT_EQ(divider(d).quotient(n), n / d) << n << " by " << d;
  }
  for (const int d : {1 << 20, (1 << 30) - 1, 1 << 30, most}) {
    for (const int n : {d - 1, d, most})
      ASSERT_EQ(divider(d).quotient(n), n / d) << n << " by " << d;
  }
  EXPECT_EQ(divider().quotient(12345), 12345) << "by one";
}

/// Between the two: a section of one head is head-first, one of all heads of a batch is
/// block-first.
TEST(meaning, of_head_sections) {
  const attention_grid g{2, 3, 2, 5};
  const auto head_first = naive_head_first(g);
  const auto block_first = naive_block_first(g);
  for (int p = 0; p < g.size(); ++p) {
    EXPECT_EQ((head_sections{g, 1}.block(p)), head_first.block(p));
    EXPECT_EQ((head_sections{g, 6}.block(p)), block_first.block(p));
    // All heads of a section come before any head of the next one.
    EXPECT_EQ((head_sections{g, 4}.block(p)) / g.blocks / 4, p / (4 * g.blocks));
    // The first one has what the last ones leave: 2, 5 and 5 heads.
    EXPECT_EQ((head_sections{g, 5}.block(p) / g.blocks + 3) / 5, (p / g.blocks + 3) / 5);
    EXPECT_EQ((head_sections{g, 3, 9}.block(p)) / g.blocks / 3 > 0, p >= 3 * g.blocks);
  }
}

}  // namespace
}  // namespace untax::order

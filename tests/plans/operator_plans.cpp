// How the fused operators are cut for GPUs, without one: every rank plans the same symmetric
// memory, pieces begin at 16 bytes and cover what is gathered, and a tile asks for the pieces that
// it reads.
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ops/all_gather_gemm/device_plan.hpp"
#include "ops/all_gather_gemm/protocol.hpp"
#include "ops/gemm_all_scatter/device_plan.hpp"
#include "ops/gemm_all_scatter/protocol.hpp"

namespace {

using namespace untax;

constexpr int processors = 132;
constexpr pattern own_patterns[] = {pattern::bulk_synchronous, pattern::producer_consumer,
                                    pattern::fused_sequential, pattern::fused_specialized,
                                    pattern::fused_warp_specialized};

class numbers {
 public:
  explicit numbers(unsigned seed) : engine_(seed) {}
  std::int64_t operator()(std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(engine_);
  }

 private:
  std::mt19937_64 engine_;
};

/// The pieces that a rectangle of A touches, by looking at all of them.
std::set<int> touched(const all_gather_gemm_protocol& how, int source, range rows, range cols) {
  std::set<int> found;
  for (int i = 0; i < how.pieces_of(source); ++i) {
    const auto p = how.piece_at(source, i);
    const bool apart = p.rows.begin >= rows.end() || rows.begin >= p.rows.end() ||
                       p.cols.begin >= cols.end() || cols.begin >= p.cols.end();
    if (!apart) found.insert(i);
  }
  return found;
}

void expect_sound(const all_gather_gemm_problem& problem, const gather_plan& plan,
                  numbers& number) {
  const all_gather_gemm_protocol how(problem, plan.protocol);
  for (int source = 0; source < how.world(); ++source) {
    std::int64_t elements = 0;
    for (int i = 0; i < how.pieces_of(source); ++i) {
      const auto p = how.piece_at(source, i);
      elements += p.rows.size * p.cols.size;
      ASSERT_EQ(p.cols.begin % 8, 0);
      ASSERT_EQ(p.cols.size % 8, 0);
    }
    const bool rows = problem.gather == gather_axis::rows;
    ASSERT_EQ(elements, how.shard(source).size * (rows ? problem.k : problem.m));
    const range r{number(0, problem.m), number(1, 256)};
    const range c{number(0, problem.k), number(1, 1024)};
    const piece_block block = how.pieces_within(source, r, c);
    std::set<int> listed;
    for (int i = 0; i < block.count(); ++i) listed.insert(block.at(i));
    ASSERT_EQ(listed, touched(how, source, r, c));
  }
  const auto parts = static_cast<int>(plan.sources.size());
  if (plan.segment_rows > 0) {
    ASSERT_EQ(plan.gemm.schedule.segments, parts);
    ASSERT_EQ(plan.gemm.schedule.x_tiles % parts, 0);
    ASSERT_EQ(plan.gemm.schedule.x_tiles * plan.gemm.config.cluster * tile_rows(plan.gemm.config),
              parts * plan.segment_rows);
  }
  if (problem.gather == gather_axis::k) {
    ASSERT_EQ(plan.gemm.schedule.slices, parts * plan.segment_slices);
  }
}

TEST(operator_plans, gathers_are_sound_and_the_same_at_all_ranks) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  numbers number(seed);
  for (int round = 0; round < 200; ++round) {
    const all_gather_gemm_problem problem{
        .m = number(1, number(0, 1) == 0 ? 300 : 9000),
        .n = 8 * number(1, 1125),
        .k = 8 * number(1, 1125),
        .gather = number(0, 1) == 0 ? gather_axis::rows : gather_axis::k};
    const auto world = static_cast<int>(number(1, 8));
    operator_options options;
    options.how = own_patterns[number(0, 4)];
    options.move = number(0, 1) == 0 ? direction::push : direction::pull;
    const auto text = fmt::format("{} x {} x {}, gather {}, {} ranks, {}", problem.m, problem.n,
                                  problem.k, name_of(problem.gather), world, name_of(options.how));
    SCOPED_TRACE(text);
    std::set<int> counters;
    std::set<std::int64_t> inboxes;
    for (int rank = 0; rank < world; ++rank) {
      const auto plans = gather_plans(problem, world, rank, options, processors);
      ASSERT_FALSE(plans.empty());
      expect_sound(problem, plans.front(), number);
      const all_gather_gemm_protocol how(problem, plans.front().protocol);
      counters.insert(how.counters());
      inboxes.insert(how.inbox().rows * how.inbox().cols + how.outbox().rows * how.outbox().cols);
    }
    EXPECT_EQ(counters.size(), 1U);
    EXPECT_EQ(inboxes.size(), 1U);
  }
}

TEST(operator_plans, scatters_are_the_same_at_all_ranks) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  numbers number(seed);
  for (int round = 0; round < 200; ++round) {
    const gemm_all_scatter_problem problem{number(1, number(0, 1) == 0 ? 300 : 9000),
                                           8 * number(1, 1125), 8 * number(1, 1125)};
    const auto world = static_cast<int>(number(1, 8));
    operator_options options;
    options.how = own_patterns[number(0, 4)];
    std::set<int> counters;
    std::set<std::string> texts;
    for (int rank = 0; rank < world; ++rank) {
      const auto plans = scatter_plans(problem, world, rank, options, processors);
      ASSERT_FALSE(plans.empty());
      const gemm_all_scatter_protocol how(problem, plans.front().protocol);
      counters.insert(how.counters());
      texts.insert(plans.front().text());
      // What a block stores is a tile of the protocol.
      const tile_grid tiles = how.tiles();
      for (int tile = 0; tile < tiles.count(); ++tile) {
        const range cols = tiles.cols_of(tile);
        ASSERT_EQ(how.tile_at(tiles.rows_of(tile).begin, cols.begin - tiles.cols.whole.begin),
                  tile);
      }
    }
    EXPECT_EQ(counters.size(), 1U);
    EXPECT_EQ(texts.size(), 1U);
  }
}

}  // namespace

// What plans of a GEMM say of tiles, stages and memory, for every configuration that there is: they
// fit a multiprocessor of Hopper, and each other.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <untax/core/error.hpp>

#include "engines/sm90/gemm/plan.hpp"
#include "tests/plans/cases.hpp"

namespace {

using untax::dtype;
using untax::errc;
using untax::error;
using untax::gather_axis;
using untax::pattern;
using namespace untax::sm90;
using plans_test::each_plan;

constexpr tile_config gather_configs[] = {
#define UNTAX_KERNEL(name, ...) {__VA_ARGS__},
#include "ops/all_gather_gemm/kernels.def"
#undef UNTAX_KERNEL
};
constexpr tile_config packet_configs[] = {
#define UNTAX_KERNEL(name, ...) {__VA_ARGS__},
#include "ops/all_gather_gemm/packet_kernels.def"
#undef UNTAX_KERNEL
};
constexpr tile_config scatter_configs[] = {
#define UNTAX_KERNEL(name, ...) {__VA_ARGS__},
#include "ops/gemm_all_scatter/kernels.def"
#undef UNTAX_KERNEL
};

template <class All>
bool has(const All& all, const tile_config& c) {
  return std::ranges::find(all, c) != std::ranges::end(all);
}

/// What a block may ask for.
constexpr std::int64_t most_shared_bytes = 227 * 1024;
/// Rows in a box of the copy engine, at most.
constexpr int most_box_rows = 256;

std::int64_t to_1024(std::int64_t bytes) { return (bytes + 1023) / 1024 * 1024; }

/// Of the memory of a block, part by part: see block_memory.
std::int64_t shared_bytes(const tile_config& c) {
  const int groups = c.deep ? 1 : 2;
  const int slices = c.deep ? 2 : 1;
  const std::int64_t stage = slices * (groups * 64 + c.columns) * 64 * 2;
  const std::int64_t chunks = groups * c.staging * to_1024(chunk_bytes(c));
  const std::int64_t halves = c.deep ? std::int64_t{64} * c.columns * 4 : 16;
  const std::int64_t share = std::max(c.columns / c.pieces, 16);
  const std::int64_t sums = (c.pieces - 1) * groups * 64 * share * 4;
  const std::int64_t barriers = 8 * (2 * c.stages + groups * (2 * c.staging + 1) + 2) + 16;
  return to_1024(c.stages * to_1024(stage) + chunks + halves + sums + barriers) + 1024;
}

/// In words.
std::string text_of(const tile_config& c) {
  gemm_plan plan;
  plan.config = c;
  return plan.text();
}

void expect_sound(const tile_config& c) {
  EXPECT_LE(shared_bytes(c), most_shared_bytes);
  EXPECT_GE(c.stages, 3);
  // Columns that the tensor cores take.
  EXPECT_TRUE(c.columns % 8 == 0 && c.columns >= 16 && c.columns <= 256);
  EXPECT_EQ(tile_rows(c), c.deep ? 64 : 128);
  EXPECT_EQ(storing_groups(c), c.deep ? 1 : 2);
  EXPECT_EQ(stage_slices(c), c.deep ? 2 : 1);
  EXPECT_EQ(tile_rows(c) * stage_slices(c), math_groups * group_rows);
  EXPECT_EQ(cluster_blocks(c), c.cluster * c.pieces);
  EXPECT_LE(cluster_blocks(c), 8);
  // Shares of a tile's columns, and chunks of a share, are all of it.
  EXPECT_EQ(share_columns(c) * shares_of(c), c.columns);
  EXPECT_LE(shares_of(c), c.pieces);
  EXPECT_GE(share_columns(c), 16);
  EXPECT_TRUE(shares_of(c) == c.pieces || share_columns(c) == 16);
  EXPECT_EQ(chunk_columns(c) * chunks_of(c), share_columns(c));
  EXPECT_EQ(chunk_columns(c) % 8, 0);
  EXPECT_LE(chunk_columns(c), 64);
  for (int columns = chunk_columns(c) + 8; columns <= 64; columns += 8)
    EXPECT_NE(share_columns(c) % columns, 0) << "chunks could be larger";
  // A chunk is 64 rows of x and some of y, and C has y down where x is B.
  EXPECT_EQ(c_box_rows(c), c.swapped ? chunk_columns(c) : 64);
  EXPECT_EQ(c_box_columns(c), c.swapped ? 64 : chunk_columns(c));
  EXPECT_EQ(chunk_bytes(c), c_box_rows(c) * 64 * 2);
  EXPECT_EQ(partial_bytes(c), tile_rows(c) * c.columns * 4);
  EXPECT_EQ(reads_early(c), c.swapped && c.columns == 16);
}

TEST(gemm_plans, configurations_fit) {
  std::set<std::string> all;
  for (const tile_config& c : tile_configs()) {
    SCOPED_TRACE(text_of(c));
    expect_sound(c);
    EXPECT_TRUE(all.insert(text_of(c)).second);
  }
  for (const tile_config& c : gather_configs) {
    EXPECT_TRUE(has(tile_configs(), c));
  }
  for (const tile_config& c : packet_configs) {
    EXPECT_TRUE(has(tile_configs(), c));
    EXPECT_TRUE(c.swapped && c.columns == 16) << "the math takes rows of packets by 16";
  }
  for (const tile_config& c : scatter_configs) {
    SCOPED_TRACE(text_of(c));
    expect_sound(c);
    EXPECT_GE(c.staging, chunks_of(c)) << "a whole tile has its place while it leaves";
    EXPECT_EQ(c.pieces, 1);
  }
}

/// Registers of a block: the file of a multiprocessor has 65536, given in steps of 8 a thread.
TEST(gemm_plans, registers_fit) {
  for (const register_shares& shares : {registers_alone, registers_with_peers}) {
    EXPECT_LE(group_threads * (shares.mover + math_groups * shares.math), 65536);
    EXPECT_EQ(shares.mover % 8, 0);
    EXPECT_EQ(shares.math % 8, 0);
    EXPECT_GE(shares.mover, 24);
    EXPECT_LE(shares.math, 255);
  }
  EXPECT_EQ(block_threads, 384);
}

/// Of a plan for a shape: tiles, what blocks read for each other, and bytes that barriers expect.
void expect_sound(const gemm_plan& p, const gemm_shape& s, int processors) {
  const tile_config& c = p.config;
  const tile_schedule& order = p.schedule;
  const std::int64_t x = c.swapped ? s.n : s.m;
  const std::int64_t y = c.swapped ? s.m : s.n;
  // Tiles cover the result, and none is beyond it.
  const std::int64_t height = std::int64_t{tile_rows(c)} * c.cluster;
  ASSERT_GE(order.x_tiles * height, x);
  ASSERT_LT((order.x_tiles - 1) * height, x);
  ASSERT_GE(std::int64_t{order.y_tiles} * c.columns, y);
  ASSERT_LT(std::int64_t{order.y_tiles - 1} * c.columns, y);
  // Slices cover k in whole stages.
  ASSERT_EQ(order.together, stage_slices(c));
  ASSERT_EQ(order.slices % order.together, 0);
  ASSERT_GE(std::int64_t{order.slices} * slice_depth, s.k);
  ASSERT_LT(std::int64_t{order.slices - order.together} * slice_depth, s.k);
  ASSERT_EQ(order.part_slices, order.slices);
  ASSERT_EQ(order.segments, 1);
  // Each block has a place, and clusters of four the room that they need.
  ASSERT_GE(order.clusters, 1);
  ASSERT_EQ(p.blocks(), order.clusters * c.cluster * c.pieces);
  ASSERT_LE(p.blocks(), cluster_blocks(c) > 2 ? processors - 16 : processors);
  ASSERT_LE(order.streamed, order.tiles());
  ASSERT_LE(std::int64_t{order.clusters},
            std::int64_t{order.whole_tiles()} +
                std::int64_t{order.streamed} * (order.slices / order.together));
  // All blocks of a cluster together read all rows of y that there are, into the room for them.
  const std::int64_t there = std::min<std::int64_t>(y, c.columns);
  ASSERT_EQ(p.y_rows % 8, 0) << "the swizzle repeats after 8 rows";
  ASSERT_GE(p.y_rows * c.cluster, there);
  ASSERT_LT((p.y_rows - 8) * c.cluster, there);
  ASSERT_LE(p.y_rows * c.cluster, c.columns);
  // What lands in a block for a stage, box by box.
  const int x_box = c.swapped ? b_box_rows(p) : a_box_rows(p);
  const int y_box = c.swapped ? a_box_rows(p) : b_box_rows(p);
  ASSERT_EQ(x_box, tile_rows(c));
  ASSERT_EQ(y_box, p.y_rows);
  ASSERT_LE(std::max(x_box, y_box), most_box_rows);
  int landed = 0;
  for (int slice = 0; slice < stage_slices(c); ++slice) {
    landed += x_box * slice_depth * 2;
    for (int block = 0; block < c.cluster; ++block) landed += y_box * slice_depth * 2;
  }
  ASSERT_EQ(stage_bytes(p), landed);
  ASSERT_LE(landed, stage_slices(c) * (tile_rows(c) + c.columns) * slice_depth * 2);
  // Room for the sums of every block, where any are left.
  ASSERT_EQ(partials_bytes(p) > 0, order.streamed > 0);
  if (order.streamed > 0) {
    ASSERT_EQ(partials_bytes(p),
              static_cast<std::size_t>(p.blocks()) * tile_rows(c) * c.columns * 4);
  }
  ASSERT_EQ(read_together(p), c.swapped ? 128 : 256);
  if (c.pieces > 1) {
    ASSERT_EQ(order.clusters, order.tiles()) << "a cluster has one tile";
    ASSERT_EQ(order.streamed, 0);
    ASSERT_GE(order.slices / order.together, c.pieces);
  }
}

TEST(gemm_plans, fit_their_shapes) {
  std::set<std::string> used;
  for (const unsigned seed : plans_test::seeds()) {
    plans_test::numbers number(seed);
    for (int round = 0; round < 200; ++round) {
      constexpr std::int64_t rows[] = {1, 8, 16, 17, 32, 64, 65, 128, 300, 5000};
      const gemm_shape shape{number(1, number.one_of(rows)), 8 * number(1, 1125),
                             8 * number(1, number(0, 3) == 0 ? 30 : 1125)};
      constexpr int counts[] = {2, 16, 33, 66, 114, 132};
      const int processors = number.one_of(counts);
      double last = 0;
      for (const gemm_plan& plan : gemm_plans(shape, processors)) {
        SCOPED_TRACE(fmt::format("{} x {} x {}, {} processors: {}", shape.m, shape.n, shape.k,
                                 processors, plan.text()));
        expect_sound(plan, shape, processors);
        ASSERT_GE(plan.cycles, last) << "the best first";
        last = plan.cycles;
        ASSERT_TRUE(has(tile_configs(), plan.config));
        used.insert(text_of(plan.config));
      }
    }
  }
  EXPECT_EQ(used.size(), tile_configs().size()) << "a configuration that is never used";
}

/// Kernels count stages of tiles that are cut in 32 bits.
TEST(gemm_plans, cut_no_more_than_can_be_counted) {
  int cut = 0;
  for (const std::int64_t k : {1 << 20, 1 << 26, 1 << 29, (1 << 30) - 8}) {
    for (const std::int64_t m : {16, 100, 5000}) {
      for (const gemm_plan& p : gemm_plans({m, 40'000, k}, 132)) {
        const tile_schedule& s = p.schedule;
        ASSERT_LE(std::int64_t{s.streamed} * (s.slices / s.together), (std::int64_t{1} << 31) - 1)
            << m << " x " << k << ": " << p.text();
        cut += s.streamed > 0 ? 1 : 0;
      }
    }
  }
  EXPECT_GT(cut, 10);
}

TEST(gemm_plans, refuse_what_cannot_be_computed) {
  constexpr std::int64_t most = std::int64_t{1} << 30;
  const auto refusal = [](const gemm_shape& shape) -> std::string {
    try {
      (void)gemm_plans(shape, 132);
    } catch (const error& e) {
      EXPECT_EQ(e.code(), errc::invalid_argument);
      return e.what();
    }
    return {};
  };
  const auto refused = [&](const gemm_shape& shape) { return !refusal(shape).empty(); };
  const gemm_shape good{16, 64, 64};
  EXPECT_FALSE(refused(good));
  EXPECT_FALSE(refused({1, 8, 8}));
  EXPECT_FALSE(refused({most - 1, 8, 8}));
  for (const gemm_shape& bad : {gemm_shape{0, 64, 64},
                                {16, 0, 64},
                                {16, 64, 0},
                                {16, 60, 64},
                                {16, 64, 60},
                                {most, 64, 64},
                                {16, most, 64},
                                {16, 64, most},
                                {16, 64, 64, dtype::f32}})
    EXPECT_TRUE(refused(bad)) << bad.m << " x " << bad.n << " x " << bad.k;
  // For the reason that it is.
  const auto says = [&](const gemm_shape& shape, const char* reason) {
    EXPECT_NE(refusal(shape).find(reason), std::string::npos) << refusal(shape);
  };
  for (const gemm_shape& none : {gemm_shape{0, 64, 64}, {16, 0, 64}, {16, 64, 0}, {-8, 64, 64}})
    says(none, "1 or more");
  for (const gemm_shape& large : {gemm_shape{most, 64, 64}, {16, most, 64}, {16, 64, most}})
    says(large, "below 2^30");
  for (const gemm_shape& odd :
       {gemm_shape{16, 1, 64}, {16, 64, 1}, {16, most - 1, 64}, {16, 64, most - 1}})
    says(odd, "multiples of 8");
  says({16, 64, 64, dtype::f32}, "bf16 or fp16");
}

/// Blocks that wait for each other, or for other ranks, are there at the same time; and a plan's
/// kernel is compiled for it.
TEST(gemm_plans, of_operators_have_places_and_kernels) {
  each_plan(plans_test::gather_cases(), [](const plans_test::planned_gather& p) {
    SCOPED_TRACE(p.text);
    const bool beside = p.options.how == pattern::producer_consumer;
    ASSERT_EQ(p.plan.leading % cluster_blocks(p.plan.gemm.config), 0);
    ASSERT_TRUE(std::isfinite(p.plan.gemm.cycles) && p.plan.gemm.cycles > 0);
    ASSERT_LE(p.plan.leading + p.plan.gemm.blocks() + (beside ? p.plan.apart : 0), p.processors);
    ASSERT_LE(p.plan.apart, p.processors);
    ASSERT_TRUE(p.options.workers == 0 || p.plan.gemm.blocks() <= p.options.workers);
    ASSERT_TRUE(p.plan.packets ? has(packet_configs, p.plan.gemm.config)
                               : has(gather_configs, p.plan.gemm.config));
    const tile_schedule& order = p.plan.gemm.schedule;
    if (p.plan.gemm.config.pieces > 1) {
      ASSERT_EQ(order.clusters, order.tiles());
      ASSERT_EQ(order.part_slices % order.together, 0);
      ASSERT_GE(order.part_slices, p.plan.gemm.config.pieces * order.together);
    }
    // Blocks that share a tile all begin with what is their rank's own.
    const auto parts = static_cast<int>(p.plan.sources.size());
    const bool by_k = p.problem.gather == gather_axis::k;
    ASSERT_EQ(order.part_slices, by_k ? p.plan.segment_slices : order.slices);
    if (by_k) {
      ASSERT_EQ(order.slices, parts * p.plan.segment_slices);
      ASSERT_EQ(p.plan.segment_slices % 2, 0) << "stages have two slices at most";
    }
  });
  each_plan(plans_test::scatter_cases(), [](const plans_test::planned_scatter& p) {
    SCOPED_TRACE(p.text);
    const bool beside = p.options.how == pattern::producer_consumer;
    ASSERT_EQ(p.plan.leading % cluster_blocks(p.plan.gemm.config), 0);
    ASSERT_TRUE(std::isfinite(p.plan.gemm.cycles) && p.plan.gemm.cycles > 0);
    ASSERT_LE(p.plan.leading + p.plan.gemm.blocks() + (beside ? p.plan.apart : 0), p.processors);
    ASSERT_LE(p.plan.apart, p.processors);
    ASSERT_TRUE(p.options.workers == 0 || p.plan.gemm.blocks() <= p.options.workers);
    ASSERT_TRUE(has(scatter_configs, p.plan.gemm.config));
  });
}

}  // namespace

// Which ranks' rows the tiles of a gather by rows have.
#include <cstdint>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "engines/gpu/gemm/cta_reads.hpp"
#include "ops/all_gather_gemm/device_plan.hpp"
#include "ops/all_gather_gemm/protocol.hpp"
#include "tests/plans/planned.hpp"

namespace {

using namespace untax;
using plans_test::num_sms;
using plans_test::own_patterns;

struct sources_case {
  std::int64_t m;
  int ranks;
  int segment_rows;  // 0: A is collected
  int segments;      // gone through one after the other
};

/// That each block has rows of one source, and each row of A is somebody's, once.
void expect_all_rows(const gather_plan& plan, const all_gather_gemm_protocol& how, std::int64_t m) {
  const gpu::tile_config& config = plan.gemm.config;
  const int block = tile_rows(config);
  std::set<std::int64_t> rows;
  for (int number = 0; number < plan.gemm.schedule.m_tiles * config.cluster; ++number) {
    const int first = number * block;
    const int segment = first / plan.segment_rows;
    ASSERT_EQ((first + block - 1) / plan.segment_rows, segment);
    ASSERT_LT(segment, static_cast<int>(plan.sources.size()));
    const range shard = how.shard(plan.sources[static_cast<std::size_t>(segment)]);
    const int from = first - segment * plan.segment_rows;
    for (std::int64_t row = from; row < from + block && row < shard.size; ++row) {
      ASSERT_TRUE(rows.insert(shard.begin + row).second);
    }
  }
  ASSERT_EQ(static_cast<std::int64_t>(rows.size()), m);
}

TEST(gathers_by_rows, blocks_have_rows_of_one_source) {
  constexpr sources_case cases[] = {
      // Few rows are y, or tiles of whole sources would waste much, and two do not fill clusters.
      {64, 2, 0, 1},
      {128, 2, 0, 1},
      {256, 4, 0, 1},
      {384, 3, 0, 1},
      // Clusters of two sources.
      {129, 2, 128, 1},
      {249, 2, 128, 1},
      {256, 2, 128, 1},
      {257, 4, 128, 1},
      {512, 4, 128, 1},
      {1024, 8, 128, 1},
      {1100, 2, 640, 1},
      // Tiles of one source, in the order in which they come.
      {400, 2, 256, 2},
      {512, 2, 256, 2},
      {2304, 2, 1280, 2},
      {3001, 3, 1024, 3},
      // As wasteful as is allowed, to the last bit.
      {6400, 4, 1792, 4},
  };
  for (const sources_case& c : cases) {
    for (const pattern how : own_patterns) {
      for (int rank = 0; rank < c.ranks; ++rank) {
        SCOPED_TRACE(fmt::format("m {}, rank {} of {}, {}", c.m, rank, c.ranks, name_of(how)));
        const all_gather_gemm_problem problem{
            .m = c.m, .n = 3584, .k = 8192, .gather = gather_axis::rows};
        operator_options options;
        options.how = how;
        const gather_plan plan = gather_plans(problem, c.ranks, rank, options, num_sms).front();
        ASSERT_EQ(plan.segment_rows, c.segment_rows);
        ASSERT_EQ(plan.gemm.schedule.segments, c.segments);
        ASSERT_EQ(plan.protocol.gather_own, c.segment_rows == 0);
        if (c.segment_rows > 0)
          expect_all_rows(plan, all_gather_gemm_protocol(problem, plan.protocol), c.m);
      }
    }
  }
}

// Every part of k that a cluster splits is added up within it.
TEST(gathers_by_rows, clusters_that_split_k_finish_their_tiles) {
  int seen = 0;
  for (const std::int64_t m : {64, 128, 256}) {
    for (const gpu::gemm_plan& plan : gpu::gemm_plans({m, 1024, 8192}, num_sms)) {
      if (plan.config.cluster_split_k < 2) continue;
      gpu::each_read(plan, [&](const gpu::cta_read& read) {
        ASSERT_TRUE(read.finishes);
        ++seen;
      });
    }
  }
  EXPECT_GT(seen, 0);
}

// Four blocks that move at least and twenty at most are tried.
TEST(gathers_by_rows, all_numbers_of_blocks_that_move_are_tried) {
  std::set<int> moving;
  for (const gather_plan& plan : gather_plans({.m = 8192, .n = 7168, .k = 8192}, 2, 0,
                                              {.how = pattern::fused_specialized}, num_sms))
    moving.insert(plan.comm_ctas);
  EXPECT_EQ(*moving.begin(), 4);
  EXPECT_EQ(*moving.rbegin(), 20);
}

}  // namespace

// What somebody asks for is what a plan has: so many senders, so many workers at most; and where
// nobody asks, no plan is a worse one for it.
#include <algorithm>
#include <string>
#include <type_traits>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/plans/cases.hpp"

namespace {

using namespace untax;
using plans_test::each_plan;
using plans_test::gather_cases;
using plans_test::own_patterns;
using plans_test::planned_gather;
using plans_test::scatter_cases;

/// Senders of clusters go by pairs, beside two blocks that multiply.
int paired(int asked, int num_sms) { return std::min((asked + 1) / 2 * 2, (num_sms - 2) / 2 * 2); }

operator_options options_of(pattern how, int senders, int workers) {
  operator_options options;
  options.how = how;
  options.senders = senders;
  options.workers = workers;
  return options;
}

template <class Plan>
void expect_senders(const Plan& p, const operator_options& o, int num_sms) {
  constexpr bool gathers = std::is_same_v<Plan, gather_plan>;
  ASSERT_EQ(p.protocol.workers, 1);
  switch (o.how) {
    case pattern::fused_specialized:
      ASSERT_EQ(p.comm_ctas, paired(o.senders, num_sms));
      ASSERT_EQ(p.own_grid + p.streams, 0);
      break;
    case pattern::producer_consumer:
      ASSERT_EQ(p.own_grid, paired(o.senders, num_sms));
      ASSERT_EQ(p.comm_ctas + p.streams, 0);
      break;
    case pattern::copy_engine:
      ASSERT_EQ(p.streams, o.senders);
      ASSERT_EQ(p.protocol.senders, o.senders);
      ASSERT_EQ(p.comm_ctas + p.own_grid, 0);
      break;
    case pattern::bulk_synchronous:
      // As few as there are chunks for; TMA tiles go by pairs.
      ASSERT_GE(p.own_grid, 1);
      ASSERT_LE(p.own_grid, gathers ? (o.senders + 1) / 2 * 2 : o.senders);
      ASSERT_EQ(p.comm_ctas + p.streams, 0);
      break;
    default:
      ASSERT_EQ(p.comm_ctas + p.own_grid + p.streams, 0);
  }
  if constexpr (gathers) {
    if (o.how == pattern::bulk_synchronous && !p.tma_tiles) ASSERT_LE(p.own_grid, o.senders);
    // All blocks move before they multiply, whatever somebody asks for.
    if (p.who == gather_senders::all_ctas_first) {
      ASSERT_EQ(p.protocol.senders, 4 * p.gemm.blocks());
    } else if (o.how == pattern::fused_warp_specialized) {
      ASSERT_LE(p.protocol.senders, o.senders);
      // All that were asked for, where there is a warp for each.
      ASSERT_GE(p.protocol.senders, std::min(o.senders, p.gemm.blocks()));
    }
  } else if (p.streams == 0) {
    // Where blocks that multiply send, they are the one publisher.
    ASSERT_EQ(p.protocol.senders, std::max(p.comm_ctas + p.own_grid, 1));
  }
}

TEST(asked_for, senders) {
  const auto look = [](const auto& p) {
    SCOPED_TRACE(p.text);
    if (p.options.senders == 0) return;
    ASSERT_NO_FATAL_FAILURE(expect_senders(p.plan, p.options, p.num_sms));
  };
  each_plan(gather_cases(), look);
  each_plan(scatter_cases(), look);
}

/// Chunks are as large as who moves them is worth, or a row, where that is more; and epilogue warps
/// move at a rate that the link takes, and no slower than is worth it.
TEST(asked_for, chunks_and_rates_are_within_bounds) {
  int by_epilogue = 0;
  each_plan(gather_cases(), [&](const planned_gather& p) {
    SCOPED_TRACE(p.text);
    const gather_plan& plan = p.plan;
    if (plan.who == gather_senders::epilogue_warps) {
      ++by_epilogue;
      ASSERT_GE(plan.rate_limit, 200);
      ASSERT_LE(plan.rate_limit, 300);
    }
    if (plan.packets || plan.tma_tiles || p.options.how == pattern::bulk_synchronous) return;
    const std::int64_t row = p.how.col_chunks(0).step * 2;
    const std::int64_t bytes = p.how.row_chunks(0).step * row;
    const std::int64_t shard =
        p.how.shard(0).size * 2 * (p.how.by_rows() ? p.problem.k : p.problem.m);
    const std::int64_t most = std::int64_t{plan.streams > 0 ? 16 << 20 : 256 << 10};
    ASSERT_LE(bytes, std::max(most, row));
    // Small shards go in small chunks, so that all who move have some.
    ASSERT_GE(bytes, shard > std::int64_t{8} << 20 ? std::int64_t{1} << 10 : 2);
    ASSERT_TRUE(plan.streams == 0 || bytes + row >= std::min<std::int64_t>(4 << 20, shard));
  });
  EXPECT_GT(by_epilogue, 5);
}

/// With as many workers as a plan has anyway it is the same plan; with fewer it has no more than
/// that; and what nobody asks for is as if all had been asked for.
template <class Plans>
void expect_workers(const Plans& plans, pattern how, int senders) {
  const auto usual = plans(options_of(how, senders, 0)).front();
  const auto with_all = plans(options_of(how, senders, 1000)).front();
  ASSERT_EQ(usual.text(), with_all.text());
  ASSERT_EQ(usual.gemm.cycles, with_all.gemm.cycles);
  for (const int workers : {2, 3, 8, 20, 61}) {
    const auto few = plans(options_of(how, senders, workers)).front();
    ASSERT_LE(few.gemm.blocks(), workers);
    ASSERT_GE(few.gemm.cycles, usual.gemm.cycles * 0.999);
  }
}

TEST(asked_for, workers) {
  for (const pattern how : own_patterns) {
    for (const std::int64_t m : {16, 300, 4096}) {
      SCOPED_TRACE(fmt::format("{}, {} rows", name_of(how), m));
      const auto gathers = [&](const operator_options& o) {
        return gather_plans({.m = m, .n = 4096, .k = 4096}, 2, 1, o, 132);
      };
      const auto scatters = [&](const operator_options& o) {
        return scatter_plans({m, 8192, 4096}, 2, 1, o, 132);
      };
      ASSERT_NO_FATAL_FAILURE(expect_workers(scatters, how, 6));
      ASSERT_NO_FATAL_FAILURE(expect_workers(gathers, how, 6));
    }
  }
}

/// Where nobody says how many move, the choice is as good as any that somebody could ask for, to
/// the model.
TEST(asked_for, nothing_is_no_worse_than_something) {
  for (const pattern how : {pattern::fused_specialized, pattern::producer_consumer}) {
    for (const std::int64_t m : {128, 1024, 4096}) {
      const double best =
          scatter_plans({m, 8192, 4096}, 4, 0, options_of(how, 0, 0), 132).front().gemm.cycles;
      for (int senders = 4; senders <= 16; senders += 2) {
        EXPECT_LE(best, scatter_plans({m, 8192, 4096}, 4, 0, options_of(how, senders, 0), 132)
                            .front()
                            .gemm.cycles)
            << m << " rows, " << senders << " senders";
      }
    }
  }
}

/// Streams of copy engines share the link, so to the model their number makes no difference.
TEST(asked_for, as_long_with_any_number_of_streams) {
  for (const std::int64_t m : {300, 4096}) {
    const auto cycles = [&](int streams) {
      const auto options = options_of(pattern::copy_engine, streams, 0);
      const scatter_plan plan = scatter_plans({m, 8192, 4096}, 4, 0, options, 132).front();
      EXPECT_EQ(plan.protocol.tile_m, plan.split_rows) << "what they send at a time is a tile";
      return plan.gemm.cycles;
    };
    for (const int streams : {1, 3, 7}) EXPECT_EQ(cycles(streams), cycles(2)) << streams;
  }
}

}  // namespace

// How a gather of few rows sends packets: which there are, where they lie, and who sends them.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <set>

#include <fmt/format.h>

#include "engines/sm90/gemm/config.hpp"
#include "ops/all_gather_gemm/device_plan.hpp"
#include "ops/all_gather_gemm/packet_panel.hpp"
#include "ops/all_gather_gemm/protocol.hpp"
#include "ops/all_gather_gemm/sending.hpp"
#include "tests/plans/planned.hpp"

namespace untax {
namespace {

using plans_test::processors;

/// As in ops/all_gather_gemm/packets.cuh.
int sending_threads(const gather_plan& plan) {
  switch (plan.who) {
    case gather_movers::all_blocks:
      return plan.gemm.schedule.clusters * sm90::group_threads;
    case gather_movers::warps:
      return plan.protocol.movers * 32;
    default:
      return plan.leading * sm90::block_threads;
  }
}

/// Each packet of A has a place of its own, and the threads that send put each there once.
void expect_all_sent_once(const all_gather_gemm_problem& problem, const gather_plan& plan) {
  std::set<int> filled;
  for (int rank = 0; rank < plan.protocol.world; ++rank) {
    gemm_plan of_rank = plan.protocol;
    of_rank.rank = rank;
    const all_gather_gemm_protocol how(problem, of_rank);
    const packet_panel panel = packet_panel::of(how);
    const sending_grid shard = sending_grid::of(how);
    ASSERT_EQ(shard.inbox_column, 0);
    const int threads = sending_threads(plan);
    for (int thread = 0; thread < threads; ++thread) {
      packet_share share(shard, thread, threads);
      ASSERT_EQ(share.turns(), packet_share(shard, thread / 32 * 32, threads).turns());
      for (int turn = 0; turn < share.turns(); ++turn) {
        const auto at = share.take();
        if (at.row < 0) continue;
        const int row = shard.inbox_row + at.row;
        ASSERT_EQ(panel.source_of(row), rank);
        ASSERT_LT(panel.at(row, at.column), panel.in_set);
        ASSERT_TRUE(filled.insert(panel.at(row, at.column)).second);
      }
    }
  }
  ASSERT_EQ(static_cast<std::int64_t>(filled.size()),
            problem.m * problem.k / packet_panel::elements);
}

TEST(gathers_by_packets, everything_is_sent_once) {
  const unsigned seed = std::random_device{}();
  std::mt19937 random(seed);
  const auto number = [&](int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random);
  };
  constexpr pattern fused[] = {pattern::fused_sequential, pattern::fused_specialized,
                               pattern::fused_warp_specialized};
  for (int round = 0; round < 60; ++round) {
    const all_gather_gemm_problem problem{.m = number(1, 16),
                                          .n = 8 * number(1, 1125),
                                          .k = 8 * number(1, 1125),
                                          .gather = gather_axis::rows};
    const int world = number(1, 16);
    operator_options options;
    options.how = fused[number(0, 2)];
    if (number(0, 1) == 1) options.movers = number(1, 40);
    if (number(0, 1) == 1) options.workers = number(2, processors);
    SCOPED_TRACE(fmt::format("seed {}: {} x {} x {}, {} ranks, {}, {} workers, {} movers", seed,
                             problem.m, problem.n, problem.k, world, name_of(options.how),
                             options.workers, options.movers));
    const gather_plan plan = gather_plans(problem, world, 0, options, processors).front();
    ASSERT_TRUE(plan.packets);
    ASSERT_EQ(plan.gemm.config.columns, 16);
    expect_all_sent_once(problem, plan);
  }
}

TEST(gathers_by_packets, others_send_pieces) {
  const auto sends_packets = [](const all_gather_gemm_problem& problem, pattern how,
                                direction move = direction::push) {
    operator_options options;
    options.how = how;
    options.move = move;
    return gather_plans(problem, 2, 0, options, processors).front().packets;
  };
  const all_gather_gemm_problem few{.m = 16, .n = 3584, .k = 8192, .gather = gather_axis::rows};
  EXPECT_TRUE(sends_packets(few, pattern::fused_sequential));
  EXPECT_FALSE(sends_packets(few, pattern::fused_specialized, direction::pull));
  for (const pattern how :
       {pattern::bulk_synchronous, pattern::producer_consumer, pattern::copy_engine})
    EXPECT_FALSE(sends_packets(few, how));
  all_gather_gemm_problem other = few;
  other.m = 17;
  EXPECT_FALSE(sends_packets(other, pattern::fused_sequential));
  other = few;
  other.gather = gather_axis::k;
  EXPECT_FALSE(sends_packets(other, pattern::fused_sequential));
  other = few;
  other.k = (std::int64_t{1} << 26) + 8;
  EXPECT_FALSE(sends_packets(other, pattern::fused_sequential));
}

}  // namespace
}  // namespace untax

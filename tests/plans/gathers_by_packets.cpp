// How a gather of few rows sends packets: which there are, where they lie, and who sends them.
#include <cstdint>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "engines/gpu/comm/packet_panel.hpp"
#include "engines/gpu/comm/placement.hpp"
#include "engines/gpu/comm/sending.hpp"
#include "engines/gpu/gemm/config.hpp"
#include "ops/all_gather_gemm/device_plan.hpp"
#include "ops/all_gather_gemm/maps.hpp"
#include "ops/all_gather_gemm/protocol.hpp"
#include "tests/plans/cases.hpp"
#include "tests/plans/planned.hpp"

namespace untax {
namespace {

using plans_test::num_sms;
using plans_test::numbers;

/// Calls `send(thread)` for each thread that sends, as the blocks of the kernel number them.
template <class Send>
void each_sender(const gather_plan& plan, const Send& send) {
  if (plan.who == gather_senders::comm_ctas) {
    const int threads = plan.comm_ctas * gpu::block_threads;
    for (int i = 0; i < threads; ++i) send(packet_thread{i, threads});
    return;
  }
  const moving_blocks beside{plan.who, true, plan.gemm.blocks(), plan.protocol.senders};
  for (int block = 0; block < plan.gemm.blocks(); ++block) {
    for (int thread = 0; thread < gpu::warpgroup_threads; ++thread) {
      if (sends_packets(beside, block, thread / 32))
        send(packet_thread_beside(beside, block, thread));
    }
  }
}

/// Each packet of A has a place of its own, and the threads that send put each there once.
void expect_all_sent_once(const all_gather_gemm_problem& problem, const gather_plan& plan) {
  std::set<int> filled;
  std::set<int> panels;
  for (int rank = 0; rank < plan.protocol.world; ++rank) {
    protocol_plan of_rank = plan.protocol;
    of_rank.rank = rank;
    const all_gather_gemm_protocol how(problem, of_rank);
    const packet_panel panel = packet_panel::of(how);
    const sending_grid shard = sending_grid::of(how);
    ASSERT_EQ(shard.inbox_column, 0);
    panels.insert(panel.in_set);
    ASSERT_LE(static_cast<std::size_t>(panel.in_set) * 2 * 16, bytes_of(plan, how).inbox);
    each_sender(plan, [&](const packet_thread& me) {
      packet_share share(shard, me.number, me.threads);
      const packet_share first(shard, me.number / 32 * 32, me.threads);
      ASSERT_EQ(share.turns(), first.turns()) << "a warp goes on together";
      const int left = shard.rows * shard.columns / packet_panel::elements - me.number / 32 * 32;
      ASSERT_EQ(share.turns(), left > 0 ? (left - 1) / me.threads + 1 : 0);
      for (int turn = 0; turn < share.turns(); ++turn) {
        const auto at = share.take();
        if (at.row < 0) continue;
        ASSERT_EQ(at.column % packet_panel::elements, 0);
        const int row = shard.inbox_row + at.row;
        ASSERT_EQ(panel.source_of(row), rank);
        const int index = panel.at(row, at.column);
        ASSERT_LT(index, panel.in_set);
        // K-block by k-block, in a k-block row by row: what the consumer reads side by side.
        ASSERT_EQ(index, (at.column / 64 * problem.m + row) * 16 + at.column % 64 / 4);
        ASSERT_TRUE(filled.insert(index).second);
      }
    });
  }
  ASSERT_EQ(panels.size(), 1U);
  ASSERT_EQ(static_cast<std::int64_t>(filled.size()), problem.m * problem.k / 4);
}

TEST(gathers_by_packets, everything_is_sent_once) {
  constexpr pattern fused[] = {pattern::fused_sequential, pattern::fused_specialized,
                               pattern::fused_warp_specialized};
  for (const unsigned seed : plans_test::seeds()) {
    numbers number(seed);
    for (int round = 0; round < 20; ++round) {
      const all_gather_gemm_problem problem{.m = number(1, 16),
                                            .n = 8 * number(1, 1125),
                                            .k = 8 * number(1, 1125),
                                            .gather = gather_axis::rows};
      const auto world = static_cast<int>(number(1, 16));
      operator_options options;
      options.how = number.one_of(fused);
      if (number(0, 1) == 1) options.senders = static_cast<int>(number(1, 40));
      if (number(0, 1) == 1) options.workers = static_cast<int>(number(2, num_sms));
      SCOPED_TRACE(fmt::format("seed {}: {} x {} x {}, {} ranks, {}, {} workers, {} senders", seed,
                               problem.m, problem.n, problem.k, world, name_of(options.how),
                               options.workers, options.senders));
      const gather_plan plan = gather_plans(problem, world, 0, options, num_sms).front();
      ASSERT_TRUE(plan.packets);
      ASSERT_EQ(plan.gemm.config.block_n, 16);
      expect_all_sent_once(problem, plan);
    }
  }
}

TEST(gathers_by_packets, others_send_chunks) {
  const auto sends_packets = [](const all_gather_gemm_problem& problem, pattern how,
                                direction move = direction::push) {
    operator_options options;
    options.how = how;
    options.move = move;
    return gather_plans(problem, 2, 0, options, num_sms).front().packets;
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
  other.k = std::int64_t{1} << 26;
  EXPECT_TRUE(sends_packets(other, pattern::fused_sequential));
}

}  // namespace
}  // namespace untax

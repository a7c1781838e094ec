// Plans of operators: explicit options appear in the plan, and defaults are at least as good. On a
// GPU with few multiprocessors, or with few blocks, the plan fits, or the refusal gives a true
// reason and advice that works.
#include <algorithm>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include <untax/core/error.hpp>

#include "engines/gpu/gemm/kernels.hpp"
#include "tests/plans/cases.hpp"

namespace {

using namespace untax;
using namespace plans_test;

/// Blocks that move beside so many that multiply in pairs.
int most_beside(int sms) { return (sms - 2) / 2 * 2; }

template <class Problem>
void expect_senders(const planned<Problem>& p) {
  const auto& plan = p.plan;
  const int senders = p.options.senders;
  const pattern how = p.options.how;
  const int pairs = (senders + 1) / 2 * 2;
  // Senders of clusters go by pairs, beside two blocks that multiply.
  const int beside = std::min(pairs, most_beside(p.sms));
  ASSERT_EQ(plan.protocol.workers, 1);
  ASSERT_EQ(plan.comm_ctas, how == pattern::fused_specialized ? beside : 0);
  ASSERT_EQ(plan.streams, how == pattern::copy_engine ? senders : 0);
  bool by_pairs = false;
  if constexpr (gathers<Problem>) by_pairs = plan.tma_tiles;
  if (how == pattern::bulk_synchronous) {
    // No more senders than chunks; blocks that send TMA tiles come in pairs.
    ASSERT_GE(plan.own_grid, 1);
    ASSERT_LE(plan.own_grid, by_pairs ? pairs : senders);
  } else {
    ASSERT_EQ(plan.own_grid, how == pattern::producer_consumer ? beside : 0);
  }
  if (plan.streams > 0) {
    ASSERT_EQ(plan.protocol.senders, senders);
  } else if constexpr (!gathers<Problem>) {
    // Where blocks that multiply send, they are the one publisher.
    ASSERT_EQ(plan.protocol.senders, std::max(plan.comm_ctas + plan.own_grid, 1));
  } else if (plan.who == gather_senders::all_ctas_first) {
    // All blocks move before they multiply, whatever the options are.
    ASSERT_EQ(plan.protocol.senders, 4 * plan.gemm.blocks());
  } else if (how == pattern::fused_warp_specialized) {
    ASSERT_LE(plan.protocol.senders, senders);
    // All that were asked for, where there is a warp for each.
    ASSERT_GE(plan.protocol.senders, std::min(senders, plan.gemm.blocks()));
  }
}

TEST(operator_plans, have_the_senders_of_the_option) {
  each_plan([](const auto& p) {
    SCOPED_TRACE(p.text());
    if (p.options.senders > 0) expect_senders(p);
  });
}

/// Chunks have the size that pays for their kind of sender, at least a row; and epilogue warps send
/// at a rate that the link takes, and no slower than pays.
TEST(operator_plans, have_chunks_and_rates_within_bounds) {
  int by_epilogue = 0;
  for (const planned_gather& p : gather_cases()) {
    SCOPED_TRACE(p.text());
    const gather_plan& plan = p.plan;
    if (plan.who == gather_senders::epilogue_warps) {
      ++by_epilogue;
      ASSERT_GE(plan.rate_limit, 200);
      ASSERT_LE(plan.rate_limit, 300);
    }
    if (plan.packets || plan.tma_tiles || p.options.how == pattern::bulk_synchronous) continue;
    const std::int64_t row = p.how.col_chunks(0).step * 2;
    const std::int64_t bytes = p.how.row_chunks(0).step * row;
    const std::int64_t shard =
        p.how.shard(0).size * 2 * (p.how.by_rows() ? p.problem.k : p.problem.m);
    const std::int64_t most = std::int64_t{plan.streams > 0 ? 16 << 20 : 256 << 10};
    ASSERT_LE(bytes, std::max(most, row));
    // Small shards go in small chunks, so that every sender has some.
    ASSERT_GE(bytes, shard > std::int64_t{8} << 20 ? std::int64_t{1} << 10 : 2);
    ASSERT_TRUE(plan.streams == 0 || bytes + row >= std::min<std::int64_t>(4 << 20, shard));
  }
  EXPECT_GT(by_epilogue, 5);
}

TEST(operator_plans, fit_on_the_gpu_and_have_kernels) {
  each_plan([](const auto& p) {
    SCOPED_TRACE(p.text());
    expect_fits(p.plan, p.options.how, p.options.workers, p.sms);
  });
  for (const planned_scatter& p : scatter_cases())
    ASSERT_EQ(std::ranges::count(gpu::scatter_kernels, p.plan.gemm.config), 1) << p.text();
  for (const planned_gather& p : gather_cases()) {
    SCOPED_TRACE(p.text());
    const gpu::tile_config& c = p.plan.gemm.config;
    ASSERT_EQ(p.plan.packets ? std::ranges::count(gpu::packet_kernels, c)
                             : std::ranges::count(gpu::gather_kernels, c),
              1);
    const gpu::tile_schedule& order = p.plan.gemm.schedule;
    if (c.cluster_split_k > 1) {
      ASSERT_EQ(order.clusters, order.tiles());
      ASSERT_EQ(order.part_k_blocks % order.k_blocks_per_stage, 0);
      ASSERT_GE(order.part_k_blocks, c.cluster_split_k * order.k_blocks_per_stage);
    }
    const bool own = !p.how.collected() && !p.how.shard(p.rank).empty();
    ASSERT_TRUE(!own || p.plan.sources.front() == p.rank) << "what is there comes first";
    // Blocks that share a tile all begin with what is their rank's own.
    const bool by_k = p.problem.gather == gather_axis::k;
    ASSERT_EQ(order.part_k_blocks, by_k ? p.plan.segment_k_blocks : order.k_blocks);
    if (by_k) {
      const auto parts = static_cast<int>(p.plan.sources.size());
      ASSERT_EQ(order.k_blocks, parts * p.plan.segment_k_blocks);
      ASSERT_EQ(p.plan.segment_k_blocks % 2, 0) << "stages have two k-blocks at most";
    }
  }
}

/// If the option is the plan's own number of workers, the plan stays the same; with fewer it has no
/// more than that; and no option is the same as the option for all.
template <class Problem>
void expect_workers(asked<Problem> what) {
  SCOPED_TRACE(what.text());
  const auto plan_for = [&](int workers) {
    what.options.workers = workers;
    return what.plans().front();
  };
  const auto usual = plan_for(0);
  const auto with_all = plan_for(1000);
  ASSERT_EQ(usual.text(), with_all.text());
  ASSERT_EQ(usual.gemm.cycles, with_all.gemm.cycles);
  for (const int workers : {2, 3, 8, 20, 61}) {
    const auto few = plan_for(workers);
    ASSERT_LE(few.gemm.blocks(), workers);
    ASSERT_GE(few.gemm.cycles, usual.gemm.cycles * 0.999);
  }
}
TEST(operator_plans, have_the_workers_of_the_option) {
  for (const pattern how : own_patterns) {
    for (const std::int64_t m : {16, 300, 4096}) {
      const operator_options options{.how = how, .senders = 6};
      expect_workers(asked_scatter{{m, 8192, 4096}, 2, options, num_sms, 1});
      expect_workers(asked_gather{{.m = m, .n = 4096, .k = 4096}, 2, options, num_sms, 1});
    }
  }
}

scatter_plan scatter_with(std::int64_t m, pattern how, int senders) {
  return scatter_plans({m, 8192, 4096}, 4, 0, {.how = how, .senders = senders}, {num_sms}).front();
}

/// Without an option for the number of senders, the choice is as good as any option, by the model.
TEST(operator_plans, are_no_worse_without_options) {
  for (const pattern how : {pattern::fused_specialized, pattern::producer_consumer}) {
    for (const std::int64_t m : {128, 1024, 4096}) {
      const double best = scatter_with(m, how, 0).gemm.cycles;
      for (int senders = 4; senders <= 16; senders += 2)
        EXPECT_LE(best, scatter_with(m, how, senders).gemm.cycles)
            << m << " rows, " << senders << " senders";
    }
  }
}

/// Streams of copy engines share the link, so to the model their number makes no difference.
TEST(operator_plans, of_copies_have_the_same_cost_for_any_number_of_streams) {
  for (const std::int64_t m : {300, 4096}) {
    const double two = scatter_with(m, pattern::copy_engine, 2).gemm.cycles;
    for (const int streams : {1, 2, 3, 7}) {
      const scatter_plan plan = scatter_with(m, pattern::copy_engine, streams);
      EXPECT_EQ(plan.gemm.cycles, two) << streams;
      EXPECT_EQ(plan.protocol.tile_m, plan.split_rows) << "what they send at a time is a tile";
    }
  }
}

TEST(operator_plans, try_every_even_number_of_moving_blocks) {
  for (const pattern how : {pattern::fused_specialized, pattern::producer_consumer}) {
    for (const int sms : {132, 22, 20, 12}) {
      const asked_gather what{{.m = 4096, .n = 3584, .k = 8192}, 2, {.how = how}, sms};
      SCOPED_TRACE(what.text());
      std::set<int> moving;
      for (const gather_plan& p : what.plans()) {
        ASSERT_TRUE(p.tma_tiles);
        moving.insert(how == pattern::producer_consumer ? p.own_grid : p.comm_ctas);
      }
      ASSERT_FALSE(moving.empty());
      EXPECT_EQ(*moving.begin(), 4);
      EXPECT_EQ(*moving.rbegin(), std::min(20, most_beside(sms)));
      for (const int number : moving) EXPECT_EQ(number % 2, 0);
    }
  }
}

/// The number that a refusal says would do.
int advice_of(const std::string& text) {
  const std::size_t end = text.find(" would do");
  if (end == std::string::npos) return 0;
  return std::stoi(text.substr(text.rfind(' ', end - 1) + 1, end));
}

template <class Problem>
void expect_true_refusal(const error& e, asked<Problem> what) {
  const std::string text = e.what();
  ASSERT_EQ(e.code(), errc::unsupported) << text;
  const bool blames_workers = text.find("option workers") != std::string::npos;
  ASSERT_EQ(blames_workers, text.find("multiprocessors") == std::string::npos) << text;
  const std::string had = blames_workers
                              ? fmt::format("(option workers is {})", what.options.workers)
                              : fmt::format("the {} multiprocessors", what.sms);
  ASSERT_NE(text.find(had), std::string::npos) << text;
  if (!blames_workers) what.options.workers = 0;
  int& few = blames_workers ? what.options.workers : what.sms;
  const int advice = advice_of(text);
  ASSERT_GT(few, 0) << "nobody asked for so few: " << text;
  ASSERT_GT(advice, few) << text;
  few = advice;
  EXPECT_NO_THROW((void)what.plans()) << text;
  few = advice - 1;
  EXPECT_THROW((void)what.plans(), error) << text;
}

/// Tries all that GPUs of few multiprocessors may be asked for; counts what is planned and refused.
template <class Problem>
void try_all(const Problem& problem, int& planned, int& refused) {
  for (const pattern how : own_patterns) {
    for (const int workers : {0, 1, 2, 5}) {
      for (const int senders : {0, 1, 3, 40}) {
        for (int sms = 1; sms <= 14; ++sms) {
          const operator_options options{.how = how, .workers = workers, .senders = senders};
          const asked<Problem> what{problem, 2, options, sms};
          SCOPED_TRACE(what.text());
          try {
            for (const auto& p : what.plans()) expect_fits(p, how, workers, sms);
            ++planned;
          } catch (const error& e) {
            expect_true_refusal(e, what);
            ++refused;
          }
        }
      }
    }
  }
}

TEST(operator_plans, fit_or_are_refused_for_a_true_reason) {
  int planned = 0;
  int refused = 0;
  for (const std::int64_t m : {16, 64, 600, 20'000}) {
    for (const gather_axis gather : {gather_axis::rows, gather_axis::k})
      try_all(all_gather_gemm_problem{.m = m, .n = 2048, .k = 1024, .gather = gather}, planned,
              refused);
    try_all(gemm_all_scatter_problem{m, 2048, 1024}, planned, refused);
  }
  EXPECT_EQ(planned, 13320);
  EXPECT_EQ(refused, 2808);
}

}  // namespace

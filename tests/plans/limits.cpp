// Where the planner's choices end: how many blocks move, how wide tiles may be, how many rows are
// collected first, where operands end; and what is planned where a rank has few multiprocessors, or
// may use few blocks: something that fits, or a refusal whose reason and advice are true.
#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "engines/gpu/gemm/kernels.hpp"
#include "tests/errors.hpp"
#include "tests/plans/cases.hpp"

namespace {

using namespace untax;
using plans_test::num_sms;
using plans_test::own_patterns;

/// Beside so many that multiply in pairs.
int most_beside(int places) { return (places - 2) / 2 * 2; }

TEST(limits, every_even_number_of_blocks_that_move_is_tried) {
  for (const pattern how : {pattern::fused_specialized, pattern::producer_consumer}) {
    for (const int places : {132, 22, 20, 12}) {
      std::set<int> moving;
      for (const gather_plan& p :
           gather_plans({.m = 4096, .n = 3584, .k = 8192}, 2, 0, {.how = how}, places)) {
        ASSERT_TRUE(p.tma_tiles);
        moving.insert(how == pattern::producer_consumer ? p.own_grid : p.comm_ctas);
      }
      SCOPED_TRACE(fmt::format("{}, {} SMs", name_of(how), places));
      ASSERT_FALSE(moving.empty());
      EXPECT_EQ(*moving.begin(), 4);
      EXPECT_EQ(*moving.rbegin(), std::min(20, most_beside(places)));
      for (const int number : moving) EXPECT_EQ(number % 2, 0);
    }
  }
}

TEST(limits, tiles_are_no_wider_than_twice_the_rows) {
  for (std::int64_t m = 1; m <= 300; ++m) {
    std::set<int> widths;
    std::set<int> all;
    for (const gpu::gemm_plan& p : gpu::gemm_plans({m, 3584, 8192}, num_sms))
      if (p.config.swap_ab) widths.insert(p.config.block_n);
    for (const gpu::tile_config& c : gpu::gemm_kernels)
      if (c.swap_ab && c.block_n > 128 && 2 * m > c.block_n) all.insert(c.block_n);
    for (const int width : widths) ASSERT_TRUE(width <= 128 || all.count(width) == 1) << m;
    for (const int width : all) ASSERT_EQ(widths.count(width), 1U) << width << " for " << m;
  }
}

TEST(limits, a_cluster_shares_a_tile_from_a_stage_for_each_of_its_blocks_on) {
  for (const gpu::tile_config& c : gpu::gemm_kernels) {
    if (c.cluster_split_k == 1) continue;
    for (const int stages : {c.cluster_split_k - 1, c.cluster_split_k}) {
      const std::int64_t k = std::int64_t{stages} * gpu::k_blocks_per_stage(c) * gpu::block_k;
      const auto plans = gpu::gemm_plans({c.block_n, 512, k}, num_sms);
      EXPECT_EQ(std::ranges::count(plans, c, &gpu::gemm_plan::config),
                stages == c.cluster_split_k ? 1 : 0)
          << c.block_n << " by " << c.cluster_split_k << ", k " << k;
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

constexpr int most_num_sms = 14;

/// The number that a refusal says would do.
int advice_of(const std::string& text) {
  const std::size_t end = text.find(" would do");
  if (end == std::string::npos) return 0;
  return std::stoi(text.substr(text.rfind(' ', end - 1) + 1, end));
}

/// `plan(workers, SMs)` plans, or throws.
template <class Plan>
void expect_true_refusal(const error& e, int workers, int places, const Plan& plan) {
  const std::string text = e.what();
  ASSERT_EQ(e.code(), errc::unsupported) << text;
  const bool blames_workers = text.find("option workers") != std::string::npos;
  const int advice = advice_of(text);
  ASSERT_EQ(blames_workers, text.find("multiprocessors") == std::string::npos) << text;
  const std::string had = blames_workers ? fmt::format("(option workers is {})", workers)
                                         : fmt::format("the {} multiprocessors", places);
  ASSERT_NE(text.find(had), std::string::npos) << text;
  if (blames_workers) {
    ASSERT_GT(workers, 0) << "nobody asked for so few: " << text;
    ASSERT_GT(advice, workers) << text;
    EXPECT_NO_THROW(plan(advice, places)) << text;
    EXPECT_THROW(plan(advice - 1, places), error) << text;
  } else {
    ASSERT_GT(advice, places) << text;
    EXPECT_NO_THROW(plan(0, advice)) << text;
    EXPECT_THROW(plan(0, advice - 1), error) << text;
  }
}

/// `plans(options, SMs)` plans.
template <class Plans>
void try_all(const std::string& name, const Plans& plans, int& refused, int& planned) {
  for (const pattern how : own_patterns) {
    for (const int workers : {0, 1, 2, 5}) {
      for (const int senders : {0, 1, 3, 40}) {
        for (int places = 1; places <= most_num_sms; ++places) {
          SCOPED_TRACE(fmt::format("{}, {}, {} workers, {} senders, {} SMs", name, name_of(how),
                                   workers, senders, places));
          const auto plan = [&](int with, int of) {
            operator_options options;
            options.how = how;
            options.workers = with;
            options.senders = senders;
            return plans(options, of);
          };
          try {
            for (const auto& p : plan(workers, places))
              plans_test::expect_fits(p, how, workers, places);
            ++planned;
          } catch (const error& e) {
            expect_true_refusal(e, workers, places, plan);
            ++refused;
          }
        }
      }
    }
  }
}

TEST(few_num_sms, fit_or_are_refused_for_a_true_reason) {
  int refused = 0;
  int planned = 0;
  for (const std::int64_t m : {16, 64, 600, 20'000}) {
    for (const gather_axis gather : {gather_axis::rows, gather_axis::k}) {
      const auto gathers = [&](const operator_options& options, int places) {
        return gather_plans({.m = m, .n = 2048, .k = 1024, .gather = gather}, 2, 0, options,
                            places);
      };
      try_all(fmt::format("all_gather_gemm of {} rows, by {}", m, name_of(gather)), gathers,
              refused, planned);
    }
    const auto scatters = [&](const operator_options& options, int places) {
      return scatter_plans({m, 2048, 1024}, 2, 0, options, places);
    };
    try_all(fmt::format("gemm_all_scatter of {} rows", m), scatters, refused, planned);
  }
  EXPECT_EQ(refused, 3504);
  EXPECT_EQ(planned, 12624);
}

}  // namespace

// With `invariant` plans for any number of rows add the products of an element in the same order.
// invariant_plans.txt has the cost by the model of the GEMM. It is written anew with
//
//     UNTAX_WRITE_PLANS=1 build/release/tests/plans_test --gtest_filter=invariant_plans.*
#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <untax/core/error.hpp>

#include "bench/suites/gemm.hpp"
#include "engines/gpu/gemm/kernels.hpp"
#include "ops/common/planning.hpp"
#include "ops/gemm_reduce_common/device_plan.hpp"
#include "tests/errors.hpp"
#include "tests/plans/cases.hpp"
#include "tests/plans/sum_order.hpp"
#include "tests/wanted_lines.hpp"

namespace {

using namespace untax;
using plans_test::num_sms;
using plans_test::numbers;
using plans_test::order_of_ranges;
using plans_test::sum_orders;

constexpr std::string_view file = "tests/plans/invariant_plans.txt";

/// The order in which the products of an element are added, in all the ways that tiles have: of
/// rows of k elements.
std::string order_of(const gpu::gemm_plan& plan, std::int64_t k) {
  const auto k_blocks = static_cast<int>(ceil_div<std::int64_t>(k, gpu::block_k));
  return fmt::format("{}", fmt::join(sum_orders(plan, k_blocks), "; "));
}

/// A GEMM operator, planned for so many rows.
struct kind {
  bool gathers_k = false;
  int number = 0;  ///< 0: gathers, 1: scatters, 2: sums
  pattern how = pattern::fused_sequential;
  int ranks = 1;
  std::int64_t n = 0;
  std::int64_t k = 0;
};

std::string order_at(const kind& chosen_kind, std::int64_t m, bool invariant, int sms) {
  operator_options options;
  options.how = chosen_kind.how;
  options.invariant = invariant;
  if (chosen_kind.number == 2) {
    const auto target = static_cast<reduce_target>(m % 2);
    const device_sum sum{"a sum",     m,          chosen_kind.n, chosen_kind.k,
                         dtype::bf16, dtype::f32, target,        2};
    return order_of(sums_plans(sum, chosen_kind.ranks, 0, options, {sms}).front().gemm,
                    sharding{chosen_kind.k, chosen_kind.ranks, shard_granularity}.full());
  }
  if (chosen_kind.number == 1)
    return order_of(scatter_plans({m, chosen_kind.n, chosen_kind.k, dtype::bf16}, chosen_kind.ranks,
                                  0, options, {sms})
                        .front()
                        .gemm,
                    chosen_kind.k);
  const auto axis = chosen_kind.gathers_k ? gather_axis::k : gather_axis::rows;
  const gather_plan plan = gather_plans({m, chosen_kind.n, chosen_kind.k, dtype::bf16, axis},
                                        chosen_kind.ranks, 0, options, sms)
                               .front();
  const std::int64_t depth =
      chosen_kind.gathers_k ? plan.gemm.schedule.k_blocks * gpu::block_k : chosen_kind.k;
  std::string order = order_of(plan.gemm, depth);
  if (chosen_kind.gathers_k)
    order += fmt::format(", {} k-blocks of rank {}", plan.segment_k_blocks,
                         fmt::join(plan.sources, ", "));
  return order;
}

TEST(invariant_plans, for_any_rows_add_in_the_same_order) {
  numbers random(3);
  int free_choices_differ = 0;
  for (int i = 0; i < 60; ++i) {
    constexpr pattern sums[] = {pattern::producer_consumer, pattern::fused_sequential,
                                pattern::fused_specialized};
    constexpr int places[] = {num_sms, 78, 20};
    kind k;
    k.number = i % 3;
    k.gathers_k = i % 2 == 0;
    k.ranks = static_cast<int>(random(1, 8));
    k.n = 8 * random(1, 1000);
    k.k = 8 * random(1, 1000);
    std::set<std::string> orders;
    std::set<std::string> free;
    for (int j = 0; j < 4; ++j) {
      const std::int64_t m = random(1, std::int64_t{1} << random(0, 13));
      k.how = k.number == 2 ? random.one_of(sums) : random.one_of(plans_test::own_patterns);
      const int sms = random.one_of(places);
      orders.insert(order_at(k, m, true, sms));
      free.insert(order_at(k, m, false, sms));
    }
    ASSERT_EQ(orders.size(), 1U) << i << ": " << fmt::format("{}", fmt::join(orders, "\n"));
    ASSERT_EQ(orders.begin()->find("(0"), 0U) << *orders.begin();
    ASSERT_EQ(orders.begin()->find(';'), std::string::npos) << *orders.begin();
    free_choices_differ += free.size() > 1 ? 1 : 0;
  }
  EXPECT_GT(free_choices_differ, 20);
}

/// Ranges of n and k say in which order the products of an element are added, in all plans.
TEST(invariant_plans, of_a_gemm_add_ranges_in_their_order) {
  std::set<int> seen;
  std::set<std::string> used;
  for (const unsigned seed : plans_test::seeds()) {
    numbers number(seed);
    for (int round = 0; round < 150; ++round) {
      const std::int64_t n = 8 * number(1, number(0, 2) == 0 ? 2000 : 600);
      const std::int64_t k = 8 * number(1, number(0, 2) == 0 ? 40 : 1125);
      const int k_blocks = static_cast<int>((k + 63) / 64);
      const int ranges = gpu::ranges_of(n, k);
      ASSERT_TRUE(ranges >= 1 && ranges <= k_blocks);
      seen.insert(ranges);
      constexpr int counts[] = {2, 33, 114, 132};
      const gpu::gemm_shape shape{number(1, std::int64_t{1} << number(0, 12)), n, k, dtype::bf16,
                                  true};
      const auto plans = gpu::gemm_plans(shape, number.one_of(counts));
      ASSERT_FALSE(plans.empty());
      for (const gpu::gemm_plan& plan : plans) {
        SCOPED_TRACE(fmt::format("seed {}: {} x {} x {}: {}", seed, shape.m, n, k, plan.text()));
        const std::string order = order_of_ranges(ranges, k_blocks);
        ASSERT_EQ(sum_orders(plan, k_blocks), std::set<std::string>{order});
        used.insert(gpu::gemm_plan{plan.config, {}}.text());
      }
    }
  }
  EXPECT_EQ(seen, (std::set<int>{1, 2, 4, 8}));
  EXPECT_EQ(used.size(), std::size(gpu::gemm_kernels) - 1) << "all but that of 16 ranges";
}

/// Each range has at least one k-block for every k, and enough of them to be worth a sum of its
/// own.
TEST(invariant_plans, have_no_empty_ranges) {
  for (const std::int64_t n : {8, 1856, 1864, 4224, 4232, 60'000}) {
    const int most = n <= 1856 ? 8 : n <= 4224 ? 4 : 2;
    for (std::int64_t k_blocks = 1; k_blocks < 300; ++k_blocks) {
      for (const std::int64_t k : {64 * k_blocks - 56, 64 * k_blocks}) {
        const int ranges = gpu::ranges_of(n, k);
        ASSERT_EQ(most % ranges, 0);
        ASSERT_TRUE(ranges > 1 || k_blocks == 1);
        const auto fit = [&](int count) {
          const std::int64_t each = (k_blocks + count - 1) / count;
          return (count - 1) * each < k_blocks && count * count <= 2 * k_blocks;
        };
        ASSERT_TRUE(ranges == 1 || fit(ranges)) << n << " x " << k;
        ASSERT_TRUE(ranges == most || !fit(2 * ranges)) << n << " x " << k;
      }
    }
  }
}

TEST(invariant_plans, are_refused_where_a_library_chooses) {
  untax_test::expect_error(
      untax_test::error_of([] { refuse_invariant("a GEMM", 3, {.invariant = true}); }),
      errc::unsupported, {"rank 3: a GEMM", "invariant", "bulk_library"});
  EXPECT_NO_THROW(refuse_invariant("a GEMM", 3, {}));
}

/// Geometric means of how many times as long the model expects it to take, by numbers of rows.
class costs {
 public:
  void add(std::int64_t rows, double invariant, double free) {
    for (group& g : groups_) {
      if (rows < g.least || rows > g.most) continue;
      g.logarithms += std::log(invariant / free);
      ++g.problems;
    }
  }
  void tell(const char* what, std::vector<std::string>& lines) const {
    for (const group& g : groups_)
      lines.push_back(fmt::format("{}, {} to {} rows: {:.2f} times, {} problems", what, g.least,
                                  g.most, std::exp(g.logarithms / g.problems), g.problems));
  }

 private:
  struct group {
    std::int64_t least;
    std::int64_t most;
    double logarithms = 0;
    int problems = 0;
  };
  group groups_[5] = {{1, 16}, {17, 128}, {129, 1024}, {1025, 16384}, {1, 16384}};
};

TEST(invariant_plans, cost_what_the_model_expects) {
  costs alone;
  costs gathers;
  costs scatters;
  costs sums;
  bench::gemm_suite_options drawn;
  drawn.problems = 200;
  for (const bench::gemm_row& row : bench::gemm_shapes(drawn)) {
    gpu::gemm_shape shape{row.m, row.n, row.k};
    const double free = gpu::plans_by_model(shape, {num_sms}).front().cycles;
    shape.invariant = true;
    alone.add(row.m, gpu::plans_by_model(shape, {num_sms}).front().cycles, free);
    const auto compare = [&](costs& to, pattern how, const auto& cycles) {
      operator_options options;
      options.how = how;
      const double any = cycles(options);
      options.invariant = true;
      to.add(row.m, cycles(options), any);
    };
    constexpr int ranks = 2;
    compare(gathers, pattern::fused_specialized, [&](const operator_options& with) {
      return gather_plans({row.m, row.n, row.k}, ranks, 0, with, num_sms).front().gemm.cycles;
    });
    compare(scatters, pattern::fused_specialized, [&](const operator_options& with) {
      return scatter_plans({row.m, row.n, row.k}, ranks, 0, with, {num_sms}).front().gemm.cycles;
    });
    compare(sums, pattern::fused_sequential, [&](const operator_options& with) {
      const device_sum sum{"a sum", row.m, row.n, row.k};
      return sums_plans(sum, ranks, 0, with, {num_sms}).front().gemm.cycles;
    });
  }
  std::vector<std::string> lines;
  alone.tell("the GEMM alone", lines);
  gathers.tell("all_gather_gemm of 2 ranks", lines);
  scatters.tell("gemm_all_scatter of 2 ranks", lines);
  sums.tell("gemm_reduce_scatter of 2 ranks", lines);
  untax_test::expect_wanted_lines(file, lines);
}

/// MMA warpgroups have registers for the sums of the ranges before beside those at hand, of kernels
/// whose other warps have some, too.
TEST(invariant_plans, have_registers_for_their_ranges) {
  operator_options options;
  options.invariant = true;
  int ranges = 0;
  const auto expect = [&](const gpu::gemm_plan& p, const gpu::register_shares& shares) {
    if (p.schedule.range_k_blocks == 0) return;
    EXPECT_TRUE(adds_ranges(p.config, shares)) << p.text();
    ++ranges;
  };
  for (std::int64_t m = 1; m < 3000; m += 1 + m / 5) {
    for (const std::int64_t n : {512, 2048, 8192}) {
      for (const pattern how : {pattern::fused_sequential, pattern::fused_specialized}) {
        options.how = how;
        for (const scatter_plan& p : scatter_plans({m, n, 8192}, 2, 0, options, {132}))
          expect(p.gemm, gpu::registers_with_peers);
        for (const sums_plan& p : sums_plans({"a sum", m, n, 16384}, 2, 0, options, {132}))
          expect(p.gemm, gpu::registers_with_sums);
      }
    }
  }
  EXPECT_GT(ranges, 500);
}

}  // namespace

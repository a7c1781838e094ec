// bulk_synchronous of gathers of rows on GPUs: when all rows are gathered before they are
// multiplied, and that their all_gather is right for all ranks.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "engines/gpu/gemm/plan.hpp"
#include "ops/all_gather_gemm/device_schedule.hpp"
#include "ops/all_gather_gemm/gathered_product.hpp"
#include "ops/all_gather_gemm/layout.hpp"
#include "ops/all_gather_gemm/row_gather.hpp"
#include "src/symmetric/queues.hpp"
#include "tests/plans/cases.hpp"

namespace {

using namespace untax;
using plans_test::each_round;
using plans_test::numbers;

constexpr all_gather_gemm_problem some{.m = 320, .n = 51200, .k = 5120};

TEST(gathered_products, gather_rows_only_without_options_of_other_kernels) {
  EXPECT_TRUE(may_gather_first(some, {}));
  EXPECT_TRUE(may_gather_first(some, {.move = direction::pull, .phases = 2, .varying_rows = true}));
  EXPECT_TRUE(may_gather_first(some, {.invariant = true, .constant_weights = true}));
  EXPECT_FALSE(may_gather_first(some, {.workers = 8}));
  EXPECT_FALSE(may_gather_first(some, {.senders = 8}));
  all_gather_gemm_problem by_k = some;
  by_k.gather = gather_axis::k;
  EXPECT_FALSE(may_gather_first(by_k, {}));
}

TEST(gathered_products, are_tried_first_where_tiles_of_shards_lose) {
  const auto usual = [](all_gather_gemm_problem p, std::int64_t rows, int world,
                        const operator_options& options = {}) {
    p.m = rows;
    return usual_gathers(p, options, world);
  };
  const std::vector<pattern> patterns = usual(some, 320, 2);
  ASSERT_FALSE(patterns.empty());
  EXPECT_EQ(patterns.front(), pattern::bulk_synchronous);
  for (const pattern how : plans_test::own_patterns)
    EXPECT_EQ(std::ranges::count(patterns, how), 1) << name_of(how);
  EXPECT_EQ(patterns.size(), std::size(plans_test::own_patterns));
  for (const std::int64_t rows : {68, 500, 2000}) EXPECT_EQ(usual(some, rows, 4), patterns);
  EXPECT_EQ(usual(some, 64, 2), std::vector<pattern>()) << "every pattern reads weights once";
  EXPECT_EQ(usual(some, 3276, 2), patterns) << "32 MiB";
  EXPECT_EQ(usual(some, 3277, 2), std::vector<pattern>());
  EXPECT_EQ(usual(some, 320, 1), std::vector<pattern>()) << "nothing is gathered";
  EXPECT_EQ(usual(some, 320, 2, {.senders = 4}), std::vector<pattern>());
  all_gather_gemm_problem by_k = some;
  by_k.gather = gather_axis::k;
  EXPECT_EQ(usual(by_k, 320, 2), std::vector<pattern>());
}

TEST(gathered_products, gather_the_rows_of_each_rank) {
  each_round(40, [](numbers& number) {
    const all_gather_gemm_problem p{
        .m = number(1, 5000), .n = 8, .k = 8 * number(1, 2000), .type = dtype::f16};
    const int world = number.count(1, 9);
    SCOPED_TRACE(fmt::format("m {}, k {}, {} ranks", p.m, p.k, world));
    const gathered_parts parts = parts_of(row_gather_of(p), world);
    for (int rank = 0; rank < world; ++rank) {
      const range rows = a_sharding(p, world).of(rank);
      ASSERT_EQ(parts.sent(rank, 0).begin, 0);
      ASSERT_EQ(parts.sent(rank, 0).size, rows.size * p.k);
      ASSERT_EQ(parts.lands(rank, 0), rows.begin * p.k);
    }
  });
}

TEST(gathered_products, have_a_gather_that_is_proved) {
  bool packets = false;
  bool direct = false;
  each_round(6, [&](numbers& number) {
    const std::int64_t most_rows = number.one_of({4L, 40L, 900L});
    const all_gather_gemm_problem p{
        .m = number(1, most_rows), .n = 64, .k = 8 * number(1, most_rows)};
    const int world = number.count(2, 8);
    SCOPED_TRACE(fmt::format("m {}, k {}, {} ranks", p.m, p.k, world));
    const device_findings findings = plan_check::check_row_gather(p, world);
    ASSERT_EQ(findings.faults, std::vector<std::string>());
    ASSERT_EQ(findings.refusal, "");
    ASSERT_GE(findings.lanes, static_cast<std::size_t>(world));
    ASSERT_GT(findings.waits, 0U);
    packets = packets || findings.plan.find("packets") != std::string::npos;
    direct = direct || findings.plan.find("direct") != std::string::npos;
  });
  EXPECT_TRUE(packets);
  EXPECT_TRUE(direct);
}

/// A rank that shares its GPU has a part of the multiprocessors for its product, down to two.
TEST(gathered_products, have_plans_on_a_part_of_a_gpu) {
  each_round(60, [](numbers& number) {
    const gpu::gemm_shape shape{.m = number(1, number.one_of({16L, 300L, 4000L})),
                                .n = 8 * number(1, 2000),
                                .k = 8 * number(1, 1000),
                                .type = dtype::bf16,
                                .invariant = number.count(0, 1) == 1};
    for (const int sharing : {1, 2, 4, 8, 16}) {
      const std::vector<gpu::gemm_plan> plans =
          plans_by_model(shape, {part_of_gpu(plans_test::num_sms, sharing)});
      ASSERT_FALSE(plans.empty()) << fmt::format("{} x {} x {}, {}, {} ranks", shape.m, shape.n,
                                                 shape.k, shape.invariant, sharing);
      ASSERT_LE(plans.front().blocks(), part_of_gpu(plans_test::num_sms, sharing));
    }
  });
}

}  // namespace

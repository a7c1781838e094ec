// The taxes on the host: every operator that a layer has, small.
#include <cmath>

#include <gtest/gtest.h>

#include <untax/taxes/ablation.hpp>

#include "sample.hpp"

namespace untax::test {
namespace {

TEST(host_meter, terms_of_every_operator_add_up) {
  const std::vector<layer_operation> operations = {
      {.name = "qkv", .operator_name = "all_gather_gemm", .m = 9, .n = 24, .k = 40},
      {.name = "by_k",
       .operator_name = "all_gather_gemm",
       .m = 9,
       .n = 24,
       .k = 40,
       .gather = gather_axis::k},
      {.name = "attention",
       .operator_name = "flash_decode",
       .m = 3,
       .n = 64,
       .k = 50,
       .attention = {4, 2, 16}},
      {.name = "down", .operator_name = "gemm_reduce_scatter", .m = 9, .n = 24, .k = 40}};
  ablation_options options;
  options.ranks = 2;
  options.repeats = 3;
  int steps = 0;
  options.progress = [&] { ++steps; };
  const auto meter = make_tax_meter(options, operations);
  int expected = 0;
  for (const layer_operation& op : operations) expected += meter->steps_of(op);
  tax_report report;
  report.layers = report.tensor_parallel = report.tokens = 1;
  report.repeats = options.repeats;
  measure_into(report, *meter, operations, [](const layer_operation&) {});
  EXPECT_EQ(steps, expected);
  EXPECT_EQ(report.backend, "host");
  EXPECT_TRUE(report.unmeasured.empty());
  ASSERT_EQ(report.rows.size(), operations.size());
  check(report);
  for (const tax_row& row : report.rows) {
    EXPECT_EQ(row.steps.size(), 5U) << row.op.name;
    const double today = row.step("E0")->time.median;
    EXPECT_NEAR(row.breakdown().total(), today, 1e-9 * today) << row.op.name;
    EXPECT_GT(row.compute.median, 0) << row.op.name;
  }
}

TEST(host_meter, unknown_operators_are_refused) {
  const layer_operation op{.name = "x", .operator_name = "gemm", .m = 1, .n = 8, .k = 8};
  const auto meter = make_tax_meter({}, {op});
  EXPECT_NE(error_text([&] { (void)meter->refusal(op); }).find("\"gemm\""), std::string::npos);
}

}  // namespace
}  // namespace untax::test

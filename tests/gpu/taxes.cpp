// The taxes on GPUs: what they are made of, not how large they are.
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <untax/taxes/ablation.hpp>

#include "gpus.hpp"

namespace {

using namespace gpu_test;
using untax::dtype;
using untax::gather_axis;
using untax::layer_operation;
using untax::tax_row;

const std::vector<layer_operation>& operations() {
  static const std::vector<layer_operation> layer_operations = {
      {.name = "qkv", .operator_name = "all_gather_gemm", .m = 40, .n = 512, .k = 1024},
      {.name = "by_k",
       .operator_name = "all_gather_gemm",
       .m = 600,
       .n = 256,
       .k = 512,
       .type = dtype::f16,
       .gather = gather_axis::k},
      {.name = "scattered", .operator_name = "gemm_all_scatter", .m = 300, .n = 512, .k = 256},
      {.name = "attention",
       .operator_name = "flash_decode",
       .m = 3,
       .n = 1024,
       .k = 500,
       .attention = {8, 2, 128}},
      {.name = "down", .operator_name = "gemm_reduce_scatter", .m = 64, .n = 512, .k = 512},
      {.name = "wide",
       .operator_name = "all_gather_gemm",
       .m = 64,
       .n = 512,
       .k = 512,
       .type = dtype::f32}};
  return layer_operations;
}

void expect_sound(const untax::tax_report& report, const tax_row& row) {
  SCOPED_TRACE(row.op.name);
  std::vector<std::string> ids;
  for (const untax::tax_step& step : row.steps) {
    ids.push_back(step.id);
    EXPECT_GT(step.time.median, 0) << step.id;
    EXPECT_LE(step.time.p10, step.time.median) << step.id;
    EXPECT_LE(step.time.median, step.time.p90) << step.id;
  }
  std::vector<std::string> expected = {"E0", "E1", "E2", "E3", "E4"};
  const bool sums = row.op.operator_name == "gemm_reduce_scatter";
  if (sums && row.step("E2") == nullptr) {
    std::erase(expected, "E2");
    EXPECT_NE(row.why_not_separable(report).find("E2 was not measured"), std::string::npos);
  }
  EXPECT_EQ(ids, expected);
  const untax::tax_breakdown parts = row.breakdown(report);
  const double today = row.step("E0")->time.median;
  EXPECT_NEAR(parts.total(), today, 1e-9 * today);
  EXPECT_TRUE(std::isfinite(parts.engine));
  EXPECT_LT(std::abs(parts.engine), today);
  EXPECT_GT(row.compute.median, 0);
  EXPECT_GT(row.link.median, 0);
  EXPECT_LE(row.link.p10, row.link.p90);
}

TEST(gpu_taxes, terms_add_up_and_operations_not_measured_are_listed) {
  NEEDS_GPUS(2);
  NEEDS_OWN_GPUS();
  untax::ablation_options options;
  options.backend = untax::memory_kind::cuda;
  options.ranks = 2;
  options.repeats = 5;
  int steps = 0;
  options.progress = [&] { ++steps; };
  const auto meter = untax::make_tax_backend(options, operations());
  untax::tax_report report;
  report.model = "a test";
  report.layers = report.tensor_parallel = report.tokens = 1;
  report.repeats = options.repeats;
  measure_into(report, *meter, operations(), [](const layer_operation&) {});
  ASSERT_EQ(report.rows.size(), 5U);
  EXPECT_EQ(steps, 5);
  for (const tax_row& row : report.rows) expect_sound(report, row);
  ASSERT_EQ(report.unmeasured.size(), 1U);
  EXPECT_NE(report.unmeasured[0].reason.find("fp32"), std::string::npos);
  EXPECT_EQ(report.backend, "cuda");
  EXPECT_EQ(report.gpus.substr(0, 4), "2 x ");
  EXPECT_FALSE(report.driver.empty());
  EXPECT_EQ(untax::from_json(to_json(report)), report);
  EXPECT_NE(render_table(report).find("Not measured"), std::string::npos);
}

}  // namespace

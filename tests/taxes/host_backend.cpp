// The taxes on the host: every operator that a layer has, small.
#include <chrono>
#include <cmath>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include <untax/core/half.hpp>
#include <untax/ops/flash_decode.hpp>
#include <untax/taxes/ablation.hpp>
#include <untax/world/launch.hpp>

#include "ops/common/random_matrix.hpp"
#include "ops/common/registry.hpp"
#include "sample.hpp"
#include "src/taxes/backends.hpp"
#include "src/taxes/multiplication_alone.hpp"
#include "src/taxes/timed_row.hpp"

namespace untax::test {
namespace {

double value_at(const void* data, dtype type, std::int64_t i) {
  if (type == dtype::f32) return static_cast<double>(static_cast<const float*>(data)[i]);
  return static_cast<double>(static_cast<float>(static_cast<const bf16*>(data)[i]));
}

TEST(host_backend, terms_of_every_operator_add_up) {
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
  const auto backend = make_tax_backend(options, operations);
  int expected = 0;
  for (const layer_operation& op : operations) expected += backend->steps_of(op);
  tax_report report;
  report.layers = report.tensor_parallel = report.tokens = 1;
  report.repeats = options.repeats;
  measure_into(report, *backend, operations, [](const layer_operation&) {});
  EXPECT_EQ(steps, expected);
  EXPECT_EQ(report.backend, "host");
  EXPECT_TRUE(report.unmeasured.empty());
  ASSERT_EQ(report.rows.size(), operations.size());
  check(report);
  for (const tax_row& row : report.rows) {
    EXPECT_EQ(row.steps.size(), 5U) << row.op.name;
    const double today = row.step("E0")->time.median;
    EXPECT_NEAR(row.breakdown(report).total(), today, 1e-9 * today) << row.op.name;
    EXPECT_GT(row.compute.median, 0) << row.op.name;
  }
}

TEST(host_backend, one_rank_waits_for_no_peer_and_sends_nothing) {
  const std::vector<layer_operation> operations = {
      {.name = "qkv", .operator_name = "all_gather_gemm", .m = 9, .n = 24, .k = 40},
      {.name = "attention",
       .operator_name = "flash_decode",
       .m = 3,
       .n = 64,
       .k = 50,
       .attention = {4, 2, 16}}};
  ablation_options options;
  options.ranks = 1;
  options.repeats = 2;
  int steps = 0;
  options.progress = [&] { ++steps; };
  const auto backend = make_tax_backend(options, operations);
  int expected = 0;
  for (const layer_operation& op : operations) {
    expected += backend->steps_of(op);
    const tax_row row = backend->measure(op);
    EXPECT_EQ(row.step("E3"), nullptr) << op.name;
    tax_report report;
    report.tensor_parallel = 1;
    report.repeats = options.repeats;
    EXPECT_EQ(row.breakdown(report).bulk_synchronous, 0) << op.name;
    EXPECT_EQ(row.why_not_separable(report).find("E3"), std::string::npos) << op.name;
    EXPECT_EQ(row.link, spread{}) << op.name;
    EXPECT_EQ(row.bound(), row.compute.median) << op.name;
  }
  EXPECT_EQ(steps, expected);
}

TEST(host_backend, attention_alone_has_the_workers_and_splits_of_the_fused_patterns) {
  run_threads(2, [](world& w) {
    const flash_decode_problem problem{
        .batch = 1, .heads = 2, .kv_heads = 1, .head_dim = 8, .keys = 4096};
    const flash_decode fused(w, problem, {.how = pattern::fused_sequential, .workers = 3});
    std::vector<world> single = world::threads(1);
    const flash_decode alone(single[0], problem, alone_like(fused.plan(), pattern::bulk_library));
    EXPECT_EQ(alone.plan().workers, 3);
    EXPECT_EQ(alone.plan().splits, fused.plan().splits);
    EXPECT_GT(alone.plan().splits, 1);
  });
}

TEST(host_backend, the_quickest_way_to_compute_is_the_bound) {
  ablation_options options;
  options.repeats = 1;
  tax_row row;
  run_threads(1, [&](world& w) {
    timed_row timed(options);
    timed.add("E0", "something", [] {});
    for (const int ms : {200, 1, 200})
      timed.add_compute([ms] { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); });
    timed.time(
        w, [] {}, row);
  });
  EXPECT_GE(row.compute.median, 1e-3);
  EXPECT_LT(row.compute.median, 0.2);
}

// Every way to multiply alone multiplies all of it, once, as many workers as there are.
TEST(multiplication_alone, every_way_is_right) {
  for (const dtype type : {dtype::f32, dtype::bf16}) {
    const gemm_problem problem{.m = 37, .n = 50, .k = 24, .type = type};
    const gemm_share share = operator_named("all_gather_gemm").share(problem, 2, 0);
    std::vector<std::byte> memory(static_cast<std::size_t>(50 * 24) * size_of(type));
    const matrix weights{memory.data(), type, 50, 24};
    random_matrix{3}.fill(weights, {0, 50}, {0, 24});
    multiplication_alone one(problem, share, {.workers = 1, .tile_m = 64, .tile_n = 64});
    one.run(alone_way::one_call, weights);
    const std::size_t bytes = static_cast<std::size_t>(37 * 50) * size_of(type);
    const std::string right(static_cast<const char*>(one.result().data), bytes);
    for (const int workers : {1, 3, 60}) {
      for (const alone_way way : alone_ways) {
        multiplication_alone it(problem, share, {.workers = workers, .tile_m = 16, .tile_n = 8});
        poison({const_cast<void*>(it.result().data), type, 37, 50});  // NOLINT(*-const-cast)
        it.run(way, weights);
        it.run(way, weights);
        double difference = 0;
        double norm = 0;
        for (std::int64_t i = 0; i < 37 * 50; ++i) {
          const double is = value_at(it.result().data, type, i);
          const double should = value_at(right.data(), type, i);
          difference += (is - should) * (is - should);
          norm += should * should;
        }
        EXPECT_LE(difference, 1e-4 * norm) << workers << " workers";
      }
    }
  }
}

TEST(host_backend, unknown_operators_are_refused) {
  const layer_operation op{.name = "x", .operator_name = "gemm", .m = 1, .n = 8, .k = 8};
  const auto backend = make_tax_backend({}, {op});
  EXPECT_NE(error_text([&] { (void)backend->refusal(op); }).find("\"gemm\""), std::string::npos);
}

}  // namespace
}  // namespace untax::test

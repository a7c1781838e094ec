// The defaults of a GEMM operator on the host.
#include <algorithm>
#include <thread>

#include <gtest/gtest.h>

#include <untax/world/launch.hpp>

#include "ops/common/planning.hpp"
#include "tests/errors.hpp"

namespace untax {
namespace {

using untax_test::error_of;
using untax_test::expect_error;

protocol_plan plan_of(const local_gemm& gemm, const operator_options& options, int ranks = 2) {
  world_options small;
  small.heap_bytes = std::size_t{1} << 16;
  const auto worlds = world::threads(ranks, small);
  return make_plan(worlds.back(), "op", gemm, options).plan;
}

int cores() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

TEST(gemm_plans_of_the_host, follow_their_options) {
  const protocol_plan plan =
      plan_of({1000, 2000, 3000, dtype::f32}, {.how = pattern::producer_consumer,
                                               .move = direction::pull,
                                               .workers = 3,
                                               .senders = 2,
                                               .tile_m = 48,
                                               .tile_n = 80,
                                               .panel_k = 24});
  EXPECT_EQ(plan.world, 2);
  EXPECT_EQ(plan.rank, 1);
  EXPECT_EQ(plan.how, pattern::producer_consumer);
  EXPECT_EQ(plan.move, direction::pull);
  EXPECT_EQ(plan.workers, 3);
  EXPECT_EQ(plan.senders, 2);
  EXPECT_EQ(plan.tile_m, 48);
  EXPECT_EQ(plan.tile_n, 80);
  EXPECT_EQ(plan.panel_k, 24);
}

// 0 leaves an option open, and 1 is the least that can be asked for.
TEST(gemm_plans_of_the_host, accept_options_of_1) {
  const protocol_plan plan =
      plan_of({1000, 2000, 3000, dtype::f32},
              {.workers = 1, .senders = 1, .tile_m = 1, .tile_n = 1, .panel_k = 1}, 1);
  EXPECT_EQ(plan.workers, 1);
  EXPECT_EQ(plan.senders, 1);
  EXPECT_EQ(plan.tile_m, 1);
  EXPECT_EQ(plan.tile_n, 1);
  EXPECT_EQ(plan.panel_k, 1);
}

TEST(gemm_plans_of_the_host, have_tiles_that_fill_the_columns_of_workers) {
  const auto tile_n = [](std::int64_t cols, int workers, std::int64_t depth, dtype type) {
    return plan_of({1000, cols, depth, type}, {.workers = workers}).tile_n;
  };
  EXPECT_EQ(tile_n(2000, 3, 100, dtype::f32), 672) << "a third, in steps of 16";
  EXPECT_EQ(tile_n(100000, 3, 100, dtype::f32), 2048);
  EXPECT_EQ(tile_n(10, 3, 100, dtype::f32), 10);
  EXPECT_EQ(tile_n(0, 3, 100, dtype::f32), 1);
  EXPECT_EQ(tile_n(1600, 1, 100, dtype::f32), 1600);
  // 16 MiB of weights are kept widened to 4 bytes, in steps of 64 columns, and 64 at least.
  EXPECT_EQ(tile_n(100000, 1, 8192, dtype::bf16), 512);
  EXPECT_EQ(tile_n(100000, 1, 10000, dtype::bf16), 384);
  EXPECT_EQ(tile_n(100000, 1, 4152, dtype::bf16), 960);
  EXPECT_EQ(tile_n(100000, 1, 1000000, dtype::bf16), 64);
  EXPECT_EQ(tile_n(100000, 1, 16, dtype::bf16), 2048);
  EXPECT_EQ(tile_n(100000, 1, 0, dtype::bf16), 2048);
  EXPECT_EQ(tile_n(100000, 1, 8192, dtype::f32), 2048);
  EXPECT_EQ(plan_of({1000, 10, 10, dtype::f32}, {.workers = 1}).tile_m, 512);
  EXPECT_EQ(plan_of({100, 10, 10, dtype::f32}, {.workers = 1}).tile_m, 100);
  EXPECT_EQ(plan_of({0, 10, 10, dtype::f32}, {.workers = 1}).tile_m, 1);
  EXPECT_EQ(plan_of({100, 10, 10, dtype::f32}, {.workers = 1}).panel_k, 2048);
  EXPECT_EQ(plan_of({100, 10, 10, dtype::f32}, {.workers = 1}).senders, 1);
}

TEST(gemm_plans_of_the_host, depend_on_the_number_of_cores) {
  for (const int ranks : {1, 2, 5}) {
    const protocol_plan plan = plan_of({100, 100, 100, dtype::f32}, {}, ranks);
    EXPECT_EQ(plan.workers, std::clamp(cores() / ranks, 1, 31));
    EXPECT_EQ(plan.how, cores() > plan.workers * ranks ? pattern::fused_specialized
                                                       : pattern::fused_sequential);
    const protocol_plan full = plan_of({100, 100, 100, dtype::f32}, {.workers = 31}, ranks);
    EXPECT_EQ(full.how,
              cores() > 31 * ranks ? pattern::fused_specialized : pattern::fused_sequential);
  }
}

TEST(gemm_plans_of_the_host, refuse_impossible_options) {
  const auto refused = [](const operator_options& options, const std::string& why) {
    expect_error(error_of([&] {
                   (void)plan_of({10, 10, 10, dtype::f32}, options);
                 }),
                 errc::invalid_argument, {"rank 1: op: option " + why});
  };
  refused({.workers = -1}, "workers is -1; it has to be between 0 (untax chooses) and 31");
  refused({.workers = 32}, "workers is 32");
  refused({.senders = 32}, "senders is 32");
  refused({.tile_m = -1}, "tile_m is -1");
  refused({.tile_n = std::int64_t{1} << 31}, "tile_n is 2147483648");
  refused({.panel_k = -5}, "panel_k is -5");
  EXPECT_NO_THROW((void)plan_of({10, 10, 10, dtype::f32}, {.workers = 31, .senders = 31}));
  expect_error(error_of([] {
                 (void)plan_of({10, 10, 10, dtype::f32}, {.how = pattern::copy_engine});
               }),
               errc::unsupported, {"rank 1: op: copy_engine is a pattern of GPUs"});
  for (const std::int64_t size : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{1} << 31}) {
    expect_error(error_of([&] { require_size("op", 3, "m", size); }), errc::invalid_argument,
                 {"rank 3: op: m is " + std::to_string(size)});
  }
  EXPECT_NO_THROW(require_size("op", 3, "m", 1));
  EXPECT_NO_THROW(require_size("op", 3, "m", 2147483647));
}

}  // namespace
}  // namespace untax

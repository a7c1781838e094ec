// flash_decode: the text of its problem, and sizes derived from the problem.
#include <gtest/gtest.h>

#include "ops/flash_decode/planning.hpp"

namespace untax {
namespace {

const flash_decode_problem plain{
    .batch = 3, .heads = 8, .kv_heads = 2, .head_dim = 64, .keys = 100, .type = dtype::f32};

flash_decode_problem paged() {
  flash_decode_problem p = plain;
  p.page_size = 16;
  p.pages = 40;
  return p;
}

TEST(attention_problem, is_described_with_pages_where_it_has_them) {
  EXPECT_EQ(describe(plain), "batch 3, heads 8 / 2 of 64, 100 keys, fp32, partials fp32");
  EXPECT_EQ(describe(paged()),
            "batch 3, heads 8 / 2 of 64, 100 keys, 40 pages of 16, fp32, partials fp32");
  flash_decode_problem other = plain;
  other.scale = 0.5F;
  other.logit_cap = 30;
  EXPECT_EQ(describe(other),
            "batch 3, heads 8 / 2 of 64, 100 keys, fp32, partials fp32, scale 0.5, logit cap 30");
}

TEST(attention_patterns, are_fewer_on_gpus) {
  EXPECT_TRUE(has_pattern(pattern::fused_specialized, false));
  EXPECT_FALSE(has_pattern(pattern::fused_specialized, true));
  EXPECT_TRUE(has_pattern(pattern::fused_sequential, true));
}

TEST(attention_problem, has_the_default_scale_without_an_option) {
  EXPECT_EQ(scale_of(plain), 0.125F);
  flash_decode_problem other = plain;
  other.scale = 0.5F;
  EXPECT_EQ(scale_of(other), 0.5F);
}

TEST(attention_problem, knows_the_size_of_its_cache) {
  EXPECT_EQ(cache_extent(plain).rows, 300);
  EXPECT_EQ(cache_extent(paged()).rows, 640);
  EXPECT_EQ(cache_extent(paged()).cols, 128);
  EXPECT_EQ(pages_of_sequence(plain), 0);
  EXPECT_EQ(pages_of_sequence(paged()), 7);
  // Keys and values; queries and results.
  EXPECT_EQ(operands_need(plain).weights, 2.0 * 4 * 300 * 2 * 64);
  EXPECT_EQ(operands_need(paged()).weights, 2.0 * 4 * 640 * 2 * 64);
  EXPECT_EQ(operands_need(plain).activations, 2.0 * 4 * 3 * 8 * 64);
}

TEST(attention_problem, is_split_if_cores_would_be_idle) {
  flash_decode_problem much = plain;
  much.batch = 1 << 20;
  EXPECT_EQ(usual_splits(much, 2), 1);
  flash_decode_problem single = plain;
  single.batch = single.kv_heads = 1;
  const int splits = usual_splits(single, 1);
  EXPECT_GT(splits, 1);
  single.kv_heads = 2;
  EXPECT_EQ(usual_splits(single, 1), 1 + (splits - 1) / 2);
  EXPECT_EQ(usual_splits(single, 2), 1 + (splits - 1) / 4);
  EXPECT_GT(heap_for(plain, 2, 2), heap_for(plain, 2, 1));
}

TEST(attention_plans_of_the_host, have_the_splits_of_the_option) {
  world_options small;
  small.heap_bytes = std::size_t{1} << 16;
  const auto worlds = world::threads(2, small);
  const auto splits = [&](std::int64_t keys, const flash_decode_options& options) {
    flash_decode_problem p = plain;
    p.batch = p.kv_heads = 1;
    p.keys = keys;
    return make_plan(worlds.back(), p, options).plan.splits;
  };
  for (const int asked : {1, 2, 5}) {
    EXPECT_EQ(splits(10, {.workers = 3, .splits = asked}), asked);
    EXPECT_EQ(splits(1000, {.workers = 3, .splits = asked}), asked);
  }
  // One for each worker, of 64 keys at least.
  EXPECT_EQ(splits(1000, {.workers = 3}), 3);
  EXPECT_EQ(splits(1000, {.workers = 1}), 1);
  EXPECT_EQ(splits(191, {.workers = 3}), 2);
  EXPECT_EQ(splits(192, {.workers = 3}), 3);
  EXPECT_EQ(splits(63, {.workers = 3}), 1);
}

}  // namespace
}  // namespace untax

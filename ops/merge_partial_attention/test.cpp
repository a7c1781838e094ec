#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <untax/core/error.hpp>
#include <untax/world/launch.hpp>

#include "ops/common/epochs_test.hpp"
#include "ops/merge_partial_attention/planning.hpp"
#include "ops/merge_partial_attention/workload.hpp"

namespace untax::testing {
namespace {

constexpr float empty = -std::numeric_limits<float>::infinity();

struct merge_case {
  merge_partial_attention_problem problem;
  merge_partial_attention_options options;
  int world = 1;
  int epochs = 5;
  std::uint64_t seed = 1;

  [[nodiscard]] std::string name() const {
    return fmt::format("{}, W {}, {}, workers {}, senders {}, seed {}", describe(problem), world,
                       name_of(options.how), options.workers, options.senders, seed);
  }
};

/// Epochs with new inputs, every other one with fewer tokens where tokens vary. Returns the bits of
/// each rank in the last one.
std::vector<std::vector<std::byte>> check_case(const merge_case& c) {
  SCOPED_TRACE(c.name());
  merge_case seeded = c;
  seeded.seed *= 8;
  world_options settings;
  settings.heap_bytes = heap_for(c.problem, c.world);
  const auto bits = check_epochs(
      seeded, settings, tolerance_of(c.problem),
      [&](world& w) { return merge_workload(w, c.problem, c.options, c.seed); },
      [&](merge_workload& load, int epoch) {
        const bool fewer = c.options.varying_tokens && epoch % 2 == 0;
        load.run(fewer ? (c.problem.tokens * epoch - 1) / 5 : c.problem.tokens);
      });
  if (c.problem.get == merged_heads::all) (void)same_at_all_ranks(bits);
  return bits;
}

merge_case random_case(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto between = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  merge_case c;
  c.seed = seed;
  c.world = static_cast<int>(between(1, 8));
  merge_partial_attention_problem& p = c.problem;
  p.tokens = between(1, 9);
  p.heads = between(0, 3) == 0 ? 8 * between(1, 4) : between(1, 20);
  p.head_dim = between(0, 5) == 0 ? 576 : between(1, 130);
  p.type = static_cast<dtype>(between(0, 2));
  p.get = between(0, 1) == 0 ? merged_heads::all : merged_heads::own;
  p.log2 = between(0, 2) == 0;
  c.options.how = between(0, 3) == 0 ? pattern::automatic
                                     : merge_patterns[static_cast<std::size_t>(between(0, 2))];
  c.options.launch = static_cast<launch_mode>(between(0, 1));
  c.options.workers = static_cast<int>(between(0, 3));
  c.options.senders = static_cast<int>(between(0, 2));
  c.options.varying_tokens = between(0, 2) == 0;
  return c;
}

TEST(merge_partial_attention, is_right_for_random_shapes_worlds_and_patterns) {
  for (std::uint64_t seed = 1; seed <= 250 && !HasFailure(); ++seed) check_case(random_case(seed));
}

TEST(merge_partial_attention, gives_the_same_bits_in_every_pattern_and_for_own_heads) {
  merge_case c;
  c.problem = {.tokens = 5, .heads = 12, .head_dim = 64};
  c.world = 3;
  const auto bits = check_case(c);
  for (const pattern how : merge_patterns) {
    c.options.how = how;
    EXPECT_EQ(check_case(c), bits) << name_of(how);
  }
  c.problem.get = merged_heads::own;
  const auto own = check_case(c);
  constexpr std::size_t of_heads = 4 * 64 * 2;
  for (std::size_t rank = 0; rank < 3; ++rank) {
    for (std::size_t token = 0; token < 5; ++token) {
      const auto at = bits[0].begin() + static_cast<std::ptrdiff_t>((token * 3 + rank) * of_heads);
      const auto own_at = own[rank].begin() + static_cast<std::ptrdiff_t>(token * of_heads);
      EXPECT_TRUE(std::equal(at, at + of_heads, own_at)) << "rank " << rank << " token " << token;
    }
  }
}

// Two ranks and two tokens of one head: both ranks have a half of the first; of the second no rank
// has anything.
TEST(merge_partial_attention, merges_by_logarithms_and_empty_parts_give_zeros) {
  run_threads(2, [](world& w) {
    merge_partial_attention op(w, {.tokens = 2, .heads = 1, .head_dim = 2, .type = dtype::f32});
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const float own = w.rank() == 0 ? 1.0F : 4.0F;
    const std::vector<float> o = {own, -own, nan, nan};
    // Weights 1 : 2, whose exponentials overflow fp32.
    const std::vector<float> lse = {300.0F + (w.rank() == 0 ? 0 : std::log(2.0F)), empty};
    std::vector<float> out(4, nan);
    std::vector<float> total(2, nan);
    op.run({o.data(), 2, 2}, {lse.data(), 2, 1}, {out.data(), 2, 2}, {total.data(), 2, 1});
    EXPECT_NEAR(out[0], 3.0F, 1e-4F);
    EXPECT_NEAR(out[1], -3.0F, 1e-4F);
    EXPECT_EQ(out[2], 0);
    EXPECT_EQ(out[3], 0);
    EXPECT_NEAR(total[0], 300 + std::log(3.0F), 1e-4F);
    EXPECT_EQ(total[1], empty);
  });
}

// FlashAttention 2 has +infinity for a row without keys.
TEST(merge_partial_attention, takes_an_infinity_of_either_sign_for_an_empty_part) {
  run_threads(2, [](world& w) {
    merge_partial_attention op(w, {.tokens = 2, .heads = 1, .head_dim = 2, .type = dtype::f32});
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const bool has_keys = w.rank() == 1;
    const std::vector<float> o = {has_keys ? 4 : nan, has_keys ? 5 : nan, nan, nan};
    const std::vector<float> lse = {has_keys ? 3 : -empty, has_keys ? -empty : empty};
    std::vector<float> out(4, nan);
    std::vector<float> total(2, nan);
    op.run({o.data(), 2, 2}, {lse.data(), 2, 1}, {out.data(), 2, 2}, {total.data(), 2, 1});
    EXPECT_EQ(out, (std::vector<float>{4, 5, 0, 0}));
    EXPECT_EQ(total[0], 3);
    EXPECT_EQ(total[1], empty);
  });
}

TEST(merge_partial_attention, leaves_memory_between_rows_unchanged) {
  run_threads(2, [](world& w) {
    merge_partial_attention op(w, {.tokens = 2, .heads = 2, .head_dim = 1, .type = dtype::f32});
    const std::vector<float> o = {1, 9, 2, 9, 3, 9, 4, 9};
    const std::vector<float> lse = {1, 2, 99, 3, 4, 99};
    std::vector<float> out(12, 7);
    std::vector<float> total(8, 7);
    op.run({o.data(), 4, 1, 2}, {lse.data(), 2, 2, 3}, {out.data(), 4, 1, 3},
           {total.data(), 2, 2, 4});
    EXPECT_EQ(out, (std::vector<float>{1, 7, 7, 2, 7, 7, 3, 7, 7, 4, 7, 7}));
    for (const std::size_t i : {2, 3, 6, 7}) EXPECT_EQ(total[i], 7);
    EXPECT_NEAR(total[5], 4 + std::log(2.0F), 1e-5F);
  });
}

std::string refusal_of(const merge_partial_attention_problem& problem,
                       const merge_partial_attention_options& options) {
  std::string text;
  run_threads(1, [&](world& w) {
    try {
      merge_partial_attention(w, problem, options);
    } catch (const error& e) {
      EXPECT_EQ(e.code(), errc::invalid_argument);
      text = e.what();
    }
  });
  return text;
}

TEST(merge_partial_attention, refuses_problems_that_make_no_sense) {
  const auto expect = [&](const char* part, auto&& change) {
    merge_partial_attention_problem p;
    merge_partial_attention_options o;
    change(p, o);
    const std::string text = refusal_of(p, o);
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  using problem = merge_partial_attention_problem&;
  using options = merge_partial_attention_options&;
  expect("tokens is 0", [](problem p, options) { p.tokens = 0; });
  expect("heads is -1", [](problem p, options) { p.heads = -1; });
  expect("head_dim is 4097", [](problem p, options) { p.head_dim = 4097; });
  expect("tokens * heads is", [](problem p, options) { p.tokens = p.heads = 1 << 11; });
  expect("option workers is -1", [](problem, options o) { o.workers = -1; });
  expect("option senders is -2", [](problem, options o) { o.senders = -2; });
  expect("has no pattern copy_engine", [](problem, options o) { o.how = pattern::copy_engine; });
}

TEST(merge_partial_attention, refuses_ranks_that_plan_different_problems) {
  const auto expect_disagreement = [](auto&& change) {
    run_threads(2, [&](world& w) {
      merge_partial_attention_problem p;
      merge_partial_attention_options o{.workers = 1};
      if (w.rank() == 1) change(p, o);
      try {
        merge_partial_attention(w, p, o);
        ADD_FAILURE() << "ranks disagree";
      } catch (const error& e) {
        EXPECT_EQ(e.code(), errc::disagreement);
      }
    });
  };
  using problem = merge_partial_attention_problem&;
  using options = merge_partial_attention_options&;
  expect_disagreement([](problem p, options) { p.tokens = 2; });
  expect_disagreement([](problem p, options) { p.heads = 2; });
  expect_disagreement([](problem p, options) { p.head_dim = 2; });
  expect_disagreement([](problem p, options) { p.get = merged_heads::own; });
  expect_disagreement([](problem p, options) { p.log2 = true; });
  expect_disagreement([](problem, options o) { o.workers = 2; });
  expect_disagreement([](problem, options o) { o.senders = 2; });
  expect_disagreement([](problem, options o) { o.varying_tokens = true; });
  expect_disagreement([](problem, options o) { o.how = pattern::bulk_synchronous; });
}

TEST(merge_partial_attention, refuses_arguments_before_anything_moves) {
  run_threads(1, [](world& w) {
    const merge_partial_attention_problem p{
        .tokens = 2, .heads = 2, .head_dim = 4, .type = dtype::f32};
    std::vector<float> o(16);
    std::vector<float> lse(4);
    std::vector<float> out(16);
    std::vector<float> total(4);
    const auto refused = [&](merge_partial_attention& op, std::int64_t tokens,
                             std::int64_t rows_of_out, float* to) {
      try {
        op.run({o.data(), tokens * 2, 4}, {lse.data(), tokens, 2}, {out.data(), rows_of_out, 4},
               {to, tokens, 2});
      } catch (const error& e) {
        EXPECT_EQ(e.code(), errc::invalid_argument);
        return std::string(e.what());
      }
      return std::string("nothing");
    };
    const auto expect = [](const std::string& text, const char* part) {
      EXPECT_NE(text.find(part), std::string::npos) << text;
    };
    merge_partial_attention op(w, p);
    EXPECT_EQ(refused(op, 2, 4, total.data()), "nothing");
    expect(refused(op, 1, 2, total.data()), "partial_o is 2 x 4");
    expect(refused(op, 2, 3, total.data()), "out is 3 x 4");
    expect(refused(op, 2, 4, out.data()), "out");
    expect(refused(op, 2, 4, nullptr), "lse");
    merge_partial_attention any(w, p, {.varying_tokens = true});
    EXPECT_EQ(refused(any, 1, 2, total.data()), "nothing");
    EXPECT_EQ(refused(any, 0, 0, total.data()), "nothing");
    expect(refused(any, 3, 6, total.data()), "partial_lse has 3 tokens; the capacity is 2");
    const merge_partial_attention moved = std::move(op);
    expect(refused(op, 2, 4, total.data()), "moved");
  });
}

}  // namespace
}  // namespace untax::testing

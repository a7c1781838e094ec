#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "support.hpp"

namespace {

using namespace c_test;

constexpr int ranks = 3;
constexpr std::int64_t tokens = 2;
constexpr std::int64_t head_dim = 8;

void expect_operand(const untax_operator* op, const char* name, std::int64_t rows,
                    std::int64_t cols) {
  std::int64_t result[2] = {};
  std::int32_t type = -1;
  EXPECT_OK(untax_operator_operand(op, name, &result[0], &result[1], &type));
  EXPECT_EQ(result[0], rows) << name;
  EXPECT_EQ(result[1], cols) << name;
  EXPECT_EQ(type, untax_f32) << name;
}

// Parts of equal weight, of which the last rank has none: the result is the mean of the others. Of
// four heads the first two ranks get two each.
TEST(c_operators, merge_partial_attention_gives_each_rank_its_heads) {
  run_ranks(ranks, [](untax_world* world, int rank) {
    untax_merge_partial_attention_problem p{};
    p.size = sizeof p;
    p.tokens = tokens;
    p.heads = 4;
    p.head_dim = head_dim;
    p.own_heads = 1;
    untax_merge_partial_attention_options options{};
    options.size = sizeof options;
    options.varying_tokens = 1;
    untax_operator* op = nullptr;
    ASSERT_EQ(untax_merge_partial_attention_plan(world, &p, &options, &op), untax_ok)
        << last_text();
    EXPECT_STREQ(untax_operator_kind(op), "merge_partial_attention");
    const std::int64_t own = rank < 2 ? 2 : 0;
    expect_operand(op, "partial_o", tokens * 4, head_dim);
    expect_operand(op, "partial_lse", tokens, 4);
    expect_operand(op, "out", tokens * own, head_dim);
    expect_operand(op, "lse", tokens, own);
    const std::vector<float> o(tokens * 4 * head_dim, static_cast<float>(rank));
    const std::vector<float> logarithms(tokens * 4,
                                        rank < 2 ? 1.0F : -std::numeric_limits<float>::infinity());
    std::vector<float> merged(static_cast<std::size_t>(tokens * own * head_dim), -99.0F);
    std::vector<float> total(static_cast<std::size_t>(tokens * own), -99.0F);
    const untax_const_matrix o_in{o.data(), tokens * 4, head_dim, 0, untax_f32};
    const untax_const_matrix lse_in{logarithms.data(), tokens, 4, 0, untax_f32};
    const untax_matrix out{merged.data(), tokens * own, head_dim, 0, untax_f32};
    const untax_matrix lse{total.data(), tokens, own, 0, untax_f32};
    EXPECT_OK(untax_merge_partial_attention_run(op, &o_in, &lse_in, &out, &lse, nullptr));
    for (const float x : merged) EXPECT_NEAR(x, 0.5F, 1e-6F);
    for (const float x : total) EXPECT_NEAR(x, 1 + std::log(2.0F), 1e-6F);
    expect_failure(untax_merge_partial_attention_run(op, &o_in, &lse_in, &out, &lse, world),
                   untax_unsupported, {"stream is given"});
    expect_failure(untax_merge_partial_attention_run(op, &o_in, nullptr, &out, &lse, nullptr),
                   untax_invalid_argument, {"partial_lse is NULL"});
    EXPECT_OK(untax_operator_destroy(op));
  });
}

}  // namespace

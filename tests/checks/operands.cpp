// Memory of the operands of trials: poison, bits, and places of the operator's own.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include <untax/core/fp8.hpp>
#include <untax/core/half.hpp>
#include <untax/world/launch.hpp>

#include "ops/common/operand_set.hpp"

namespace {

using namespace untax;

enum : std::size_t { in, wide, half, narrow, own };

const std::vector<trial_operand> operands = {
    {"in", operand_role::input, 2, 3},
    {"wide", operand_role::result, 2, 3},
    {"half", operand_role::result, 1, 4, sizeof(bf16)},
    {"narrow", operand_role::result, 1, 5, 1},
    {.name = "own", .role = operand_role::result, .rows = 1, .cols = 2, .in_operator = true}};

TEST(operand_set, poisons_results_of_every_type_and_leaves_inputs) {
  run_threads(1, [](world& w) {
    operand_set set(w, operands);
    float place[] = {1, 2, 3};
    set[own].lie_at(place);
    std::fill_n(static_cast<float*>(set[in].host()), 6, 7.0F);
    set.poison_results();
    for (const float value : set[in].values<float>()) EXPECT_EQ(value, 7);
    for (const float value : set[wide].values<float>()) EXPECT_TRUE(std::isnan(value));
    for (const bf16 value : set[half].values<bf16>())
      EXPECT_TRUE(std::isnan(static_cast<float>(value)));
    for (const e4m3 value : set[narrow].values<e4m3>())
      EXPECT_TRUE(std::isnan(static_cast<float>(value)));
    EXPECT_TRUE(std::isnan(place[0]) && std::isnan(place[1]));
    EXPECT_EQ(place[2], 3) << "it lies behind the result";
  });
}

TEST(operand_set, has_the_bits_of_results_in_their_order) {
  run_threads(1, [](world& w) {
    operand_set set(w, operands);
    float place[] = {1, 2};
    set[own].lie_at(place);
    set.poison_results();
    place[0] = 5;
    const std::vector<std::byte> bits = set.result_bits();
    ASSERT_EQ(bits.size(), 6 * sizeof(float) + 4 * sizeof(bf16) + 5 + 2 * sizeof(float));
    float first = 0;
    std::memcpy(&first, &bits[bits.size() - 2 * sizeof(float)], sizeof first);
    EXPECT_EQ(first, 5);
    EXPECT_EQ(bits.front(), std::byte{0xff});
  });
}

TEST(operand_set, symmetric_memory_is_as_large_at_every_rank) {
  run_threads(2, [](world& w) {
    const std::vector<trial_operand> shared = {
        {.name = "in", .rows = 1, .cols = w.rank() + 1, .symmetric_bytes = 2 * sizeof(float)}};
    operand_set set(w, shared);
    EXPECT_EQ(set[0].bytes(), static_cast<std::size_t>(w.rank() + 1) * sizeof(float));
    EXPECT_EQ(set[0].host(), set[0].data());
    EXPECT_EQ(need_of(shared).heap_of_rank, 2 * sizeof(float));
    w.barrier();
  });
}

}  // namespace

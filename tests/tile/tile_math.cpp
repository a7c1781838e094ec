// The host keeps exactly those operands widened that the next steps read.
#include <algorithm>
#include <array>
#include <vector>

#include <gtest/gtest.h>

#include <untax/core/half.hpp>

#include "engines/host/convert.hpp"
#include "engines/host/tile_math.hpp"

namespace untax::host {
namespace {

// A [4, 8], B [2, 8] and C [2, 4, 2]: the sum of the first `depth` columns, in units of rows.
TEST(tile_math, widens_anew_where_more_columns_are_wanted) {
  constexpr std::int64_t rows = 4;
  constexpr std::int64_t columns = 8;
  std::array<bf16, rows * columns> a{};
  std::array<bf16, 2 * columns> b{};
  std::array<float, 2 * rows> c{};
  for (std::int64_t i = 0; i < rows * columns; ++i)
    a[static_cast<std::size_t>(i)] = bf16(static_cast<float>(i / columns + 1));
  b.fill(bf16(1.0F));
  const auto memory = [](auto& values, std::int64_t stride, dtype type) {
    return operand_memory{
        .base = reinterpret_cast<std::byte*>(values.data()), .stride = stride, .type = type};
  };
  operand_table operands;
  operands[operand::a] = memory(a, columns, dtype::bf16);
  operands[operand::b] = memory(b, columns, dtype::bf16);
  operands[operand::c] = memory(c, 2, dtype::f32);
  tile_math math({rows, 2});
  math.start_run();
  for (const std::int64_t depth : {rows, columns, rows, std::int64_t{2}, columns}) {
    step s{.what = action::multiply, .first = true, .last = true};
    s.rows = rows;
    s.cols = 2;
    s.depth = depth;
    s.from = {operand::a, 0, 0, 0};
    s.weights = {operand::b, 0, 0, 0};
    s.to = {operand::c, 0, 0, 0};
    math.perform(s, operands);
    for (std::int64_t row = 0; row < rows; ++row)
      EXPECT_EQ(c[static_cast<std::size_t>(2 * row)], static_cast<float>((row + 1) * depth));
  }
}

// Peers read results from where they are stored, so a tile is stored once, when it is complete.
TEST(tile_math, stores_a_tile_when_it_is_complete) {
  std::array<bf16, 2> a{bf16(1.0F), bf16(2.0F)};
  std::array<bf16, 2> b{bf16(1.0F), bf16(1.0F)};
  std::array<bf16, 1> c{bf16(77.0F)};
  const auto memory = [](auto& values, std::int64_t stride) {
    return operand_memory{
        .base = reinterpret_cast<std::byte*>(values.data()), .stride = stride, .type = dtype::bf16};
  };
  operand_table operands;
  operands[operand::a] = memory(a, 2);
  operands[operand::b] = memory(b, 2);
  operands[operand::c] = memory(c, 1);
  tile_math math({1, 1});
  math.start_run();
  for (const std::int64_t k : {0, 1}) {
    step s{.what = action::multiply, .first = k == 0, .last = k == 1};
    s.rows = s.cols = s.depth = 1;
    s.from = {operand::a, 0, 0, k};
    s.weights = {operand::b, 0, 0, k};
    s.to = {operand::c, 0, 0, 0};
    math.perform(s, operands);
    EXPECT_EQ(static_cast<float>(c[0]), k == 0 ? 77.0F : 3.0F);
  }
}

// Weights are widened block by block, where they are too many to be kept at once.
TEST(tile_math, multiplies_by_weights_that_are_widened_in_blocks) {
  constexpr std::int64_t depth = 1 << 16;
  constexpr std::int64_t columns = 130;  // two blocks of 64, and two more
  std::vector<bf16> a(depth, bf16(1.0F));
  std::vector<bf16> b(columns * depth);
  for (std::int64_t n = 0; n < columns; ++n)
    std::fill_n(b.begin() + n * depth, depth, bf16(static_cast<float>(n + 1)));
  std::vector<bf16> c(columns + 3, bf16(-1.0F));
  const auto memory = [](auto& values, std::int64_t stride) {
    return operand_memory{
        .base = reinterpret_cast<std::byte*>(values.data()), .stride = stride, .type = dtype::bf16};
  };
  operand_table operands;
  operands[operand::a] = memory(a, depth);
  operands[operand::b] = memory(b, depth);
  operands[operand::c] = memory(c, columns + 3);
  tile_math math({1, columns});
  math.start_run();
  step s{.what = action::multiply, .first = true, .last = true};
  s.rows = 1;
  s.cols = columns;
  s.depth = depth;
  s.from = {operand::a, 0, 0, 0};
  s.weights = {operand::b, 0, 0, 0};
  s.to = {operand::c, 0, 0, 2};
  math.perform(s, operands);
  for (std::int64_t n = 0; n < columns; ++n)
    EXPECT_EQ(static_cast<float>(c[static_cast<std::size_t>(n + 2)]),
              static_cast<float>(bf16(static_cast<float>(depth * (n + 1)))));
  for (const std::size_t beside : {std::size_t{0}, std::size_t{1}, c.size() - 1})
    EXPECT_EQ(static_cast<float>(c[beside]), -1.0F);
}

// As partial results of peers were rounded on their way.
TEST(tile_math, rounds_as_a_type_does) {
  constexpr float value = 1.0F + 0x1p-9F + 0x1p-12F;  // a tie for neither of the two
  const auto rounded = [&](dtype type) {
    std::array<float, 6> values{value, value, 7.0F, value, value, 7.0F};
    round_to(type, values.data(), 3, 2, 2);
    EXPECT_EQ(values[2], 7.0F);
    EXPECT_EQ(values[5], 7.0F);
    EXPECT_EQ(values[0], values[4]);
    return values[0];
  };
  EXPECT_EQ(rounded(dtype::f16), static_cast<float>(f16(value)));
  EXPECT_EQ(rounded(dtype::bf16), static_cast<float>(bf16(value)));
  EXPECT_EQ(rounded(dtype::f32), value);
  EXPECT_NE(rounded(dtype::f16), value);
  EXPECT_NE(rounded(dtype::f16), rounded(dtype::bf16));
}

TEST(math_needs, are_exactly_those_of_all_steps) {
  operand_table types;
  for (const operand role : {operand::a, operand::b, operand::c, operand::inbox, operand::outbox})
    types[role].type = dtype::f32;
  const auto needed = [&](const std::vector<step>& steps) {
    math_need need;
    for (const step& s : steps) need.add(s, types);
    return need;
  };
  const auto sized = [](action what, operand from, operand to, std::int64_t cols,
                        std::int64_t depth) {
    step s{.what = what};
    s.rows = 7;
    s.cols = cols;
    s.depth = depth;
    s.from.of = from;
    s.to.of = to;
    return s;
  };
  const step by_c = sized(action::multiply, operand::a, operand::c, 5, 9);
  const step by_product = sized(action::multiply, operand::a, operand::product, 5, 9);
  const step by_panel = sized(action::multiply, operand::panel, operand::c, 5, 9);
  EXPECT_EQ(needed({}), math_need());
  EXPECT_EQ(needed({by_c}), math_need());
  EXPECT_EQ(needed({by_product}), (math_need{.product = true}));
  EXPECT_EQ(needed({sized(action::add, operand::inbox, operand::sum, 5, 9)}),
            (math_need{.sum = true}));
  EXPECT_EQ(needed({sized(action::reduce, operand::a, operand::c, 5, 4),
                    sized(action::reduce, operand::a, operand::c, 5, 3)}),
            (math_need{.addends = 4}));
  EXPECT_EQ(needed({sized(action::normalise, operand::sum, operand::c, 5, 4),
                    sized(action::normalise, operand::sum, operand::c, 3, 9)}),
            (math_need{.hidden = 5}));
  EXPECT_EQ(needed({sized(action::copy, operand::inbox, operand::panel, 5, 4),
                    sized(action::copy, operand::inbox, operand::panel, 3, 9)}),
            (math_need{.panel = 5}));
  EXPECT_EQ(needed({sized(action::copy, operand::inbox, operand::panel, 0, 4)}),
            (math_need{.panel = 1}));
  EXPECT_EQ(needed({sized(action::copy, operand::a, operand::inbox, 5, 4)}), math_need());
  types[operand::a].type = types[operand::b].type = dtype::bf16;
  step deeper = by_c;
  deeper.depth = 11;
  EXPECT_EQ(needed({deeper, by_c}), (math_need{.left = 11, .right = 11}));
  EXPECT_EQ(needed({by_panel}), (math_need{.right = 9}));
  types[operand::c].type = dtype::bf16;
  EXPECT_EQ(needed({by_panel}), (math_need{.product = true, .right = 9}));
  // Types of no step are no need.
  EXPECT_EQ(needed({sized(action::store, operand::sum, operand::c, 5, 4)}), math_need());
}

}  // namespace
}  // namespace untax::host

// What the host keeps widened is what the next steps want, and no more.
#include <array>

#include <gtest/gtest.h>

#include <untax/core/half.hpp>

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

}  // namespace
}  // namespace untax::host

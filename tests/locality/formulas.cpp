// Orders of one's own: what formulas mean, what is refused, and the verdict on those that are no
// bijection.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <untax/locality/order_formula.hpp>

#include "tests/locality/support.hpp"

namespace untax::locality::test {
namespace {

/// A grid of 6 x 8 blocks, with a size that is whole and one that is not.
kernel grid() {
  return kernel::read(
      "size w = 3\nsize half = 0.5\naxis y = 6\naxis x = 8\noperand A = 48, 32, 4\n"
      "read A = y * 8 + x, 1, 0, 32\n",
      "grid", {});
}

std::vector<std::int64_t> numbers(const std::string& text) {
  return order_formula::read(text, "f", grid(), 4).numbers();
}

TEST(formulas, have_the_values_of_integer_arithmetic) {
  const std::pair<const char*, std::int64_t (*)(std::int64_t)> known[] = {
      {"p", [](std::int64_t p) { return p; }},
      {"47 - p", [](std::int64_t p) { return 47 - p; }},
      {"(p * 5 + 3) % blocks", [](std::int64_t p) { return (p * 5 + 3) % 48; }},
      {"p % 4 * 12 + p // 4", [](std::int64_t p) { return p % 4 * 12 + p / 4; }},
      {"p ^ 3", [](std::int64_t p) { return p ^ 3; }},
      {"p & 7 | p >> 3 << 3", [](std::int64_t p) { return (p & 7) | ((p >> 3) << 3); }},
      {"~-p - 1 + 2", [](std::int64_t p) { return p; }},
      {"min(p, 47) + max(0, p - 100)", [](std::int64_t p) { return p; }},
      {"where(p < 24, p + 24, p - 24)", [](std::int64_t p) { return p < 24 ? p + 24 : p - 24; }},
      {"(p >= 24) * (p - 24) + (p < 24) * (p + 24)",
       [](std::int64_t p) { return p < 24 ? p + 24 : p - 24; }},
      {"-1 // 2 + 1 + p", [](std::int64_t p) { return p; }},
      {"-1 % 48 - 47 + p", [](std::int64_t p) { return p; }},
      {"0x10 - 16 + p", [](std::int64_t p) { return p; }},
      {"y * x_blocks + x", [](std::int64_t p) { return p; }},
      {"q = p + w; p = q - w", [](std::int64_t p) { return p; }},
      {"# transposed\nq = p\ny = q % y_blocks\nx = q // y_blocks  # columns",
       [](std::int64_t p) { return p % 6 * 8 + p / 6; }},
  };
  for (const auto& [text, meaning] : known) {
    const std::vector<std::int64_t> got = numbers(text);
    ASSERT_EQ(got.size(), 48U) << text;
    for (int p = 0; p < 48; ++p) EXPECT_EQ(got[static_cast<std::size_t>(p)], meaning(p)) << text;
  }
}

TEST(formulas, are_orders_if_they_are_bijections) {
  const block_order order = order_formula::read("p % 4 * 12 + p // 4", "f", grid(), 4).order();
  for (int p = 0; p < 48; ++p) EXPECT_EQ(order.position(order.block(p)), p);
  EXPECT_EQ(order.table(48), order_named(grid(), 4, "full remap").table(48));
}

TEST(formulas, may_be_lists) {
  std::string text;
  for (int i = 47; i >= 0; --i) text += fmt::format("{}{}", i, i % 7 == 0 ? ",\n" : " ");
  EXPECT_EQ(numbers(text).front(), 47);
  EXPECT_NE(refusal([] { (void)numbers("1 2 3"); }).find("a list of 3 blocks does not fit"),
            std::string::npos);
}

TEST(formulas, that_are_no_bijections_are_judged) {
  const order_verdict verdict = judge(numbers("p // 2 * 2"));
  EXPECT_FALSE(verdict.is_bijection());
  EXPECT_EQ(verdict.distinct, 24);
  EXPECT_EQ(verdict.repeated, 24);
  EXPECT_EQ(verdict.outside, 0);
  EXPECT_EQ(verdict.missing, (std::vector<int>{1, 3, 5, 7}));
  const order_verdict beyond = judge(numbers("p + 40"));
  EXPECT_EQ(beyond.distinct, 8);
  EXPECT_EQ(beyond.outside, 40);
  // A place beyond its axis is no block, although the number of a block comes of it.
  EXPECT_EQ(judge(numbers("x = p % 8 + 8; y = p // 8 - 1")).outside, 48);
  EXPECT_NE(refusal([] { (void)order_formula::read("p // 2", "f", grid(), 4).order(); })
                .find("no bijection: 24 of 48 blocks are done, 24 of them more than once; 24 are "
                      "never done (block 24, 25, 26, 27, ...)"),
            std::string::npos);
}

TEST(formulas, that_cannot_be_read_are_refused_with_the_line) {
  const std::pair<const char*, const char*> wrong[] = {
      {"", "there is no statement"},
      {"# nothing\n", "there is no statement"},
      {"p +", "expected a number"},
      {"p\nq = (p", "f:2: expected ')'"},
      {"p / 2", "a division that rounds down is //"},
      {"2.5 * p", "numbers are whole"},
      {"half * p", "half is not known; known are p, blocks, domains, y, x, y_blocks, x_blocks, w"},
      {"sqrt(p)", "there is no function sqrt"},
      {"min(p)", "expected ','"},
      {"q = p", "the last statement gives the block"},
      {"p p", "expected an operator"},
      {"p % 0", "f: a division by 0 at position 0"},
      {"p << 70", "a shift by 70"},
      {"99999999999999999999", "not below 2^40"},
  };
  for (const auto& [text, says] : wrong) {
    const std::string why = refusal([given = text] { (void)numbers(given); });
    EXPECT_NE(why.find(says), std::string::npos) << text << " -> " << why;
  }
  const std::string deep(2000, '(');
  EXPECT_NE(refusal([&] { (void)numbers(deep); }).find("too many brackets"), std::string::npos);
}

}  // namespace
}  // namespace untax::locality::test

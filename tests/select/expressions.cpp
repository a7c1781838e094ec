#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <untax/select/expression.hpp>

#include "support.hpp"

namespace untax::select {
namespace {

const std::vector<std::string> names = {"a", "b", "c_1"};
const std::vector<double> values = {6, 4, 0.5};

double value_of(const char* text) { return expression::parse(text, names).value(values); }

TEST(expressions, have_the_values_of_arithmetic) {
  EXPECT_EQ(value_of("1 + 2 * 3"), 7);
  EXPECT_EQ(value_of("(1 + 2) * 3"), 9);
  EXPECT_EQ(value_of("a - b - 1"), 1);
  EXPECT_EQ(value_of("a / b / 3"), 0.5);
  EXPECT_EQ(value_of("-a + -(b)"), -10);
  EXPECT_EQ(value_of("1 / 2"), 0.5);
  EXPECT_EQ(value_of("2.5e-1 * c_1"), 0.125);
  EXPECT_EQ(value_of("min(a, b) + max(a, b * 2)"), 12);
  EXPECT_EQ(value_of("sqrt(b) + log2(b)"), 4);
  EXPECT_EQ(value_of("floor(a / b) + floor(-c_1)"), 0);
  EXPECT_EQ(value_of("mod(a, b) + 10 * mod(-1, b)"), 32);
  EXPECT_TRUE(std::isinf(value_of("a / (b - 4)")));
}

TEST(expressions, have_comparisons_of_numbers) {
  EXPECT_EQ(value_of("a < b"), 0);
  EXPECT_EQ(value_of("b < a"), 1);
  EXPECT_EQ(value_of("b <= 4"), 1);
  EXPECT_EQ(value_of("b < 4"), 0);
  EXPECT_EQ(value_of("b > 4"), 0);
  EXPECT_EQ(value_of("b >= 4"), 1);
  EXPECT_EQ(value_of("b >= 4 and a > 5"), 1);
  EXPECT_EQ(value_of("b >= 4 and a > 6"), 0);
  EXPECT_EQ(value_of("b > 4 and a > 5"), 0);
  EXPECT_EQ(value_of("b < 5 and(a) > 5"), 1);
}

TEST(expressions, know_which_names_they_use) {
  EXPECT_EQ(expression::parse("c_1 + a * c_1", names).uses(), (std::vector<int>{0, 2}));
  EXPECT_TRUE(expression::parse("1", names).uses().empty());
}

TEST(expressions, are_written_in_cpp) {
  EXPECT_EQ(expression::parse("a * 2 <= b and c_1 > 1", names).cpp(names),
            "(((a * 2.0) <= b) && (c_1 > 1.0))");
  EXPECT_EQ(expression::parse("min(a, -b) / sqrt(4)", names).cpp(names),
            "(std::min(a, (-b)) / std::sqrt(4.0))");
  EXPECT_EQ(expression::parse("a - (b - 1) + max(a, log2(b))", names).cpp(names),
            "((a - (b - 1.0)) + std::max(a, std::log2(b)))");
  EXPECT_EQ(expression::parse("mod(a, b) + floor(c_1)", names).cpp(names),
            "((a - b * std::floor(a / b)) + std::floor(c_1))");
}

TEST(expressions, are_refused_with_the_place) {
  for (const char* text :
       {"", "a +", "(a", "a b", "a <", "a < b < c_1", "1..2", "foo(a)", "min(a)", "max(a, b, a)",
        "a ** b", "%", "a and", "a < 1 andb > 2", "a < 1 and_b", "1e999"}) {
    const std::string said = test::refusal([&] { (void)expression::parse(text, names); });
    EXPECT_NE(said.find("character"), std::string::npos) << "'" << text << "': " << said;
  }
  const std::string unknown = test::refusal([] { (void)expression::parse("a + d", names); });
  EXPECT_NE(unknown.find("'d' is not known; known are a, b, c_1"), std::string::npos) << unknown;
  const std::string deep(100000, '(');
  EXPECT_NE(test::refusal([&] { (void)expression::parse(deep, names); }), "");
}

}  // namespace
}  // namespace untax::select

#include "ops/common/operator_test.hpp"

namespace untax::testing {
namespace {

/// There is a program for each of those in ops/common/registry.hpp, with what its own test.cpp
/// adds.
const operator_entry& entry() { return operator_named(UNTAX_OPERATOR); }

TEST(product, is_right_for_random_shapes_worlds_and_patterns) {
  check_random_cases(entry(), 1, 250);
}
TEST(product, is_right_in_every_pattern_on_a_single_element) {
  check_all_patterns(entry(), 1, 1, 1, dtype::f32);
}
TEST(product, is_right_in_every_pattern_where_nothing_divides) {
  check_all_patterns(entry(), 37, 53, 72, dtype::bf16);
}
TEST(product, every_operator_of_the_registry_has_such_a_program) {
  for (const operator_entry& entry : operators())
    EXPECT_NE(std::string(UNTAX_PRODUCTS "|").find(entry.name + "|"), std::string::npos)
        << entry.name;
}

}  // namespace
}  // namespace untax::testing

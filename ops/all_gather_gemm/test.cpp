#include "ops/common/operator_test.hpp"

namespace untax::testing {
namespace {

TEST(all_gather_gemm, is_right_for_random_shapes_worlds_and_patterns) {
  check_random_cases(all_gather_gemm_entry(), 1, 250);
}

TEST(all_gather_gemm, is_right_in_every_pattern_on_a_single_element) {
  check_all_patterns(all_gather_gemm_entry(), 1, 1, 1, dtype::f32);
}

TEST(all_gather_gemm, is_right_in_every_pattern_where_nothing_divides) {
  check_all_patterns(all_gather_gemm_entry(), 37, 53, 72, dtype::bf16);
}

}  // namespace
}  // namespace untax::testing

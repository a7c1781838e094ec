#include "ops/all_gather_gemm/protocol.hpp"
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

TEST(all_gather_gemm, multiplies_while_it_gathers_unless_the_senders_wait_for_the_gather) {
  for (const bool acquire : {false, true}) {
    protocol_plan plan;
    plan.how = pattern::producer_consumer;
    plan.world = 2;
    plan.senders_acquire = acquire;
    const all_gather_gemm_protocol protocol({.m = 64, .n = 16, .k = 16}, plan);
    ASSERT_EQ(protocol.kernels(), 2);
    EXPECT_EQ(protocol.kernel_at(0).stage, 0);
    EXPECT_EQ(protocol.kernel_at(1).stage, acquire ? 1 : 0);
  }
}

}  // namespace
}  // namespace untax::testing

#include "ops/all_gather_gemm/protocol.hpp"
#include "ops/common/operator_test.hpp"

namespace untax::testing {
namespace {

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

// What kernels are planned to do is what their programs say: every sender, at every turn, against
// the lists that the program is lowered to, and all that CTAs read and wait for.
#include <gtest/gtest.h>

#include "ops/all_gather_gemm/validate.hpp"
#include "ops/gemm_all_scatter/lowered.hpp"
#include "tests/plans/cases.hpp"

namespace {

using namespace untax;
using plans_test::each_plan;
using plans_test::gather_cases;
using plans_test::planned_gather;

TEST(lowered, gathers_do_what_their_programs_say) {
  each_plan(gather_cases(), [](const planned_gather& p) {
    if (testing::Test::HasFailure()) return;
    const auto faults = faults_of(p.problem, p.plan);
    ASSERT_TRUE(faults.empty()) << p.text << "\n" << faults.front();
  });
}

TEST(lowered, scatters_do_what_their_programs_say) {
  each_plan(plans_test::scatter_cases(), [](const plans_test::planned_scatter& p) {
    if (testing::Test::HasFailure()) return;
    const auto faults = faults_of(p.problem, p.plan);
    ASSERT_TRUE(faults.empty()) << p.text << "\n" << faults.front();
  });
}

}  // namespace

// How long it takes until the last band of a product has been copied away: by what multiplies, or
// by what copies.
#include <gtest/gtest.h>

#include "engines/sm90/gemm/plan.hpp"
#include "ops/gemm_all_scatter/leaving.hpp"

namespace untax {
namespace {

sm90::gemm_plan plan_of(double cycles, int tiles) {
  sm90::gemm_plan plan;
  plan.cycles = cycles;
  plan.schedule.x_tiles = tiles;
  plan.schedule.y_tiles = 1;
  return plan;
}

TEST(copied_bands, follow_each_other_as_they_are_multiplied) {
  const sm90::gemm_plan slow = plan_of(1e7, 1);
  const double one = cycles_until_copied(slow, 1, 2);
  const double next = cycles_until_copied(slow, 2, 2) - one;
  EXPECT_GT(one, 1e7);
  EXPECT_GE(next, 1e7);
  EXPECT_LT(next, 1.1e7) << "the copy of one band goes beside the next one";
  for (int bands = 3; bands < 9; ++bands)
    EXPECT_NEAR(cycles_until_copied(slow, bands, 2), one + (bands - 1) * next, 1);
}

TEST(copied_bands, wait_for_the_link_where_that_is_slower) {
  const sm90::gemm_plan quick = plan_of(1, 100000);
  const double one = cycles_until_copied(quick, 1, 2);
  const double next = cycles_until_copied(quick, 2, 2) - one;
  EXPECT_GT(next, 1e5);
  EXPECT_LT(next, one);
  for (int bands = 3; bands < 9; ++bands)
    EXPECT_NEAR(cycles_until_copied(quick, bands, 2), one + (bands - 1) * next, 1);
  EXPECT_NEAR(
      cycles_until_copied(plan_of(1, 200000), 2, 2) - cycles_until_copied(plan_of(1, 200000), 1, 2),
      2 * next, 1);
}

}  // namespace
}  // namespace untax

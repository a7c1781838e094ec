// How long it takes until the last row split of a product has been copied away: by what multiplies,
// or by what copies.
#include <gtest/gtest.h>

#include "engines/gpu/gemm/plan.hpp"
#include "ops/gemm_all_scatter/device_plan.hpp"

namespace untax {
namespace {

gpu::gemm_plan plan_of(double cycles, int tiles) {
  gpu::gemm_plan plan;
  plan.cycles = cycles;
  plan.schedule.m_tiles = tiles;
  plan.schedule.n_tiles = 1;
  return plan;
}

TEST(copied_row_splits, are_limited_by_the_products_if_they_are_slower) {
  const gpu::gemm_plan slow = plan_of(1e7, 1);
  const double single = drain_cycles_of_copies(slow, 1, 2);
  const double next = drain_cycles_of_copies(slow, 2, 2) - single;
  EXPECT_GT(single, 1e7);
  EXPECT_GE(next, 1e7);
  EXPECT_LT(next, 1.1e7) << "the copy of one row split goes beside the next one";
  for (int row_splits = 3; row_splits < 9; ++row_splits)
    EXPECT_NEAR(drain_cycles_of_copies(slow, row_splits, 2), single + (row_splits - 1) * next, 1);
}

TEST(copied_row_splits, are_limited_by_the_link_if_it_is_slower) {
  const gpu::gemm_plan quick = plan_of(1, 100000);
  const double single = drain_cycles_of_copies(quick, 1, 2);
  const double next = drain_cycles_of_copies(quick, 2, 2) - single;
  EXPECT_GT(next, 1e5);
  EXPECT_LT(next, single);
  for (int row_splits = 3; row_splits < 9; ++row_splits)
    EXPECT_NEAR(drain_cycles_of_copies(quick, row_splits, 2), single + (row_splits - 1) * next, 1);
  EXPECT_NEAR(drain_cycles_of_copies(plan_of(1, 200000), 2, 2) -
                  drain_cycles_of_copies(plan_of(1, 200000), 1, 2),
              2 * next, 1);
}

}  // namespace
}  // namespace untax

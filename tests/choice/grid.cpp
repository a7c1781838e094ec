// The problems at which tables are measured, and those at which they are judged.
#include <algorithm>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "bench/suites/tune.hpp"
#include "sample.hpp"

namespace choice_test {
namespace {

using namespace untax::bench;

TEST(grid, held_out_problems_are_the_same_every_time_and_not_in_the_grid) {
  for (const tuned_family& family : tuned_families()) {
    const auto grid = tuning_grid(family, 4, false);
    const auto held_out = held_out_problems(family, 4, 50);
    ASSERT_EQ(held_out.size(), 50U);
    EXPECT_EQ(held_out, held_out_problems(family, 4, 50));
    std::set<std::string> shapes;
    for (const tuned_problem& p : held_out) {
      shapes.insert(shape_text(p));
      EXPECT_EQ(std::ranges::count(grid, p), 0) << shape_text(p);
      EXPECT_EQ(p.n % 8 + p.k % 8, 0) << shape_text(p);
      EXPECT_GE(p.m, grid.front().m);
      EXPECT_LE(p.m, grid.back().m);
    }
    EXPECT_EQ(shapes.size(), 50U);
  }
}

TEST(grid, has_every_family_once_at_every_size) {
  EXPECT_EQ(tuned_families().size(), 7U) << "two axes of a gather, and two types of two sums";
  EXPECT_EQ(tuned_families("gemm_all_scatter").size(), 1U);
  EXPECT_EQ(tuned_families("gemm_reduce_scatter").size(), 2U);
  for (const bool quick : {true, false}) {
    for (const tuned_family& family : tuned_families()) {
      std::set<std::string> shapes;
      for (const tuned_problem& p : tuning_grid(family, 2, quick)) {
        EXPECT_EQ(p.ranks, 2);
        EXPECT_TRUE(shapes.insert(shape_text(p)).second) << shape_text(p);
      }
      EXPECT_GE(shapes.size(), quick ? 8U : 40U);
    }
  }
}

/// A measurement that is cut short has something of every family.
TEST(grid, begins_with_the_coarse_grid_of_every_family) {
  const auto families = tuned_families();
  const std::vector<tuned_problem> order = tuning_order(families, {2, 4}, false);
  const std::vector<tuned_problem> coarse = tuning_order(families, {2, 4}, true);
  EXPECT_TRUE(std::equal(coarse.begin(), coarse.end(), order.begin()));
  std::size_t wanted = 0;
  for (const tuned_family& family : families) {
    for (const int ranks : {2, 4}) {
      for (const tuned_problem& p : tuning_grid(family, ranks, true))
        EXPECT_EQ(std::ranges::count(coarse, p), 1) << shape_text(p);
      for (const tuned_problem& p : tuning_grid(family, ranks, false))
        EXPECT_EQ(std::ranges::count(order, p), 1) << shape_text(p);
      wanted += tuning_grid(family, ranks, false).size();
    }
  }
  EXPECT_EQ(order.size(), wanted) << "what is in the quick grid is in the other, too";
}

TEST(grid, a_check_compares_the_choice_with_the_best) {
  tune_result result;
  result.table = empty_table();
  const tuned_problem p{"all_gather_gemm", gather_axis::k, 4, 64, 4096, 8192};
  result.table.entries = {
      {p, {{pattern::bulk_library, 1.02e-5}, {pattern::fused_sequential, 1e-5}}},
      {p, {{pattern::bulk_library, 2e-5}, {pattern::fused_sequential, 1e-5}}},
      {p, {{pattern::fused_sequential, 1e-5}}}};
  result.choices.assign(3, {pattern::bulk_library, "since it is so"});
  const tune_check check = check_choices(result);
  ASSERT_EQ(check.rows.size(), 2U) << "of the third the choice was not measured";
  EXPECT_EQ(check.rows[0].chosen, pattern::bulk_library);
  EXPECT_EQ(check.rows[0].best, pattern::fused_sequential);
  EXPECT_EQ(check.rows[0].reason, "since it is so");
  EXPECT_NEAR(check.rows[0].loss(), 0.02, 1e-12);
  EXPECT_NEAR(check.rows[1].loss(), 1, 1e-12);
  EXPECT_NEAR(check.share(), 0.5, 1e-12);
  EXPECT_FALSE(check.met());
}

}  // namespace
}  // namespace choice_test

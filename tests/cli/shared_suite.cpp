#include "bench/suites/shared.hpp"

#include <gtest/gtest.h>

#include <untax/core/error.hpp>

namespace untax::bench {
namespace {

TEST(shared_suite, problems_are_drawn_or_have_the_given_rows) {
  shared_options options;
  options.problems = 5;
  EXPECT_EQ(steps_of(options), 2 * 2 * 5);
  for (const gemm_problem& p : problems_of(options, "gemm_all_reduce", 2)) {
    EXPECT_EQ(partials_type(p), p.type);
    EXPECT_EQ(p.n % 8 + p.k % 8, 0);
  }
  options.partials = dtype::f32;
  for (const gemm_problem& p : problems_of(options, "gemm_all_reduce", 2))
    EXPECT_EQ(partials_type(p), dtype::f32);

  options.operators = {"gemm_reduce_scatter"};
  options.sizes = {16, 128, 130};
  const auto given = problems_of(options, "gemm_reduce_scatter", 4);
  ASSERT_EQ(given.size(), 6U);
  EXPECT_EQ(given[2].m, 128);
  EXPECT_EQ(given[5].m, 130);
  EXPECT_EQ(steps_of(options), 2 * 6);
}

TEST(shared_suite, one_rank_sums_by_default) {
  shared_options options;
  options.rank_counts = {1};
  EXPECT_EQ(default_operators(1).front(), "gemm_reduce_scatter");
  EXPECT_EQ(problems_of(options, "gemm_reduce_scatter", 1).size(), 8U);
  EXPECT_EQ(steps_of(options), 16);
}

TEST(shared_suite, an_unknown_operator_is_refused) {
  EXPECT_THROW((void)problems_of({}, "gemm_all_shatter", 2), error);
}

}  // namespace
}  // namespace untax::bench

#include "ops/common/deviation.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "mutated.hpp"

namespace {

using namespace checks_test;
using namespace untax;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

double error_of(double actual, double right) {
  deviation d(1e-3);
  d.add(actual, right, 1e-3, 1);
  return d.relative_error();
}

TEST(deviation, of_nan_is_infinite_unless_nan_is_expected) {
  EXPECT_EQ(error_of(nan, 1), infinity);
  EXPECT_EQ(error_of(infinity, 1), infinity);
  EXPECT_EQ(error_of(1, nan), infinity);
  EXPECT_EQ(error_of(1, -infinity), infinity);
  EXPECT_EQ(error_of(infinity, -infinity), infinity);
  EXPECT_EQ(error_of(nan, infinity), infinity);
  EXPECT_EQ(error_of(nan, nan), 0);
  EXPECT_EQ(error_of(-infinity, -infinity), 0);
  EXPECT_EQ(error_of(0, -0.0), 0);
}

TEST(deviation, keeps_nan_whatever_values_follow) {
  deviation d(1e-3);
  d.add(nan, 1, 1, 1);
  for (int i = 0; i < 1000; ++i) d.add(1, 1, 1, 1);
  EXPECT_EQ(d.relative_error(), infinity);
  EXPECT_EQ(std::max(0.0, d.relative_error()), infinity);
}

TEST(deviation, is_infinite_if_a_bound_or_a_sum_is_nan) {
  deviation unbounded(1e-3);
  unbounded.add(1, 1 + 1e-6, nan, 1);
  EXPECT_EQ(unbounded.relative_error(), infinity);
  deviation unexpected(1e-3);
  unexpected.add(1, 1 + 1e-6, 1, nan);
  EXPECT_EQ(unexpected.relative_error(), infinity);
  for (const gpu::comparison& rows :
       {gpu::comparison{.difference = nan, .size = 1, .broken = 0, .worst = 0},
        gpu::comparison{.difference = 0, .size = nan, .broken = 0, .worst = 0},
        gpu::comparison{.difference = 0, .size = 1, .broken = 0, .worst = NAN}}) {
    deviation d(1e-3);
    d.add(rows, 100, 1);
    EXPECT_EQ(d.relative_error(), infinity);
  }
}

TEST(deviation, is_the_frobenius_norm_while_elements_are_within_their_bounds) {
  const std::vector<double> right = {3, 4};
  deviation d(1e-2);
  d.add_row(std::span<const double>(std::vector<double>{3, 4.03}), right, 1e-2, 0);
  EXPECT_NEAR(d.relative_error(), 0.03 / 5, 1e-12);
}

TEST(deviation, is_above_the_tolerance_with_one_wrong_element_of_millions) {
  deviation d(1e-2);
  const std::vector<double> right(4096, 1.0);
  for (int i = 0; i < 1000; ++i) d.add_row(std::span<const double>(right), right, 1e-2, 0);
  EXPECT_EQ(d.relative_error(), 0);
  std::vector<double> actual = right;
  actual[17] += 0.1;
  d.add_row(std::span<const double>(actual), right, 1e-2, 0);
  EXPECT_NEAR(d.relative_error(), 0.1, 1e-9);
}

TEST(deviation, without_a_tolerance_wants_equal_elements) {
  deviation d(0);
  d.add_row(std::span<const double>(std::vector<double>{1, 2}), std::vector<double>{1, 2}, 0, 1);
  EXPECT_EQ(d.relative_error(), 0);
  d.add(1, 1 + 1e-6, 0, 1);
  EXPECT_GT(d.relative_error(), 0);
}

TEST(deviation, of_gpu_rows_follows_from_the_gpus_sums) {
  deviation right(1e-2);
  right.add({.difference = 4, .size = 40000, .broken = 0, .worst = 0.5F}, 100, 1);
  EXPECT_NEAR(right.relative_error(), 0.01, 1e-12);
  deviation wrong(1e-2);
  wrong.add({.difference = 0, .size = 1, .broken = 0, .worst = 3.0F}, 100, 1);
  EXPECT_NEAR(wrong.relative_error(), 0.03, 1e-7);
  deviation broken(1e-2);
  broken.add({.difference = 0, .size = 1, .broken = 1, .worst = 0}, 100, 1);
  EXPECT_EQ(broken.relative_error(), infinity);
}

/// Sums of `ranks` partial results stay within the allowed error if the partial results are rounded
/// to bf16, also if the running sum is, as in a library that passes it from rank to rank.
TEST(deviation, allows_for_the_rounding_of_partial_results) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  for (const int ranks : {2, 4, 8}) {
    double worst = 0;
    for (int i = 0; i < 1'000'000; ++i) {
      double exact = 0;
      float sum = 0;
      for (int r = 0; r < ranks; ++r) {
        const double p = normal(random) / std::sqrt(static_cast<double>(ranks));
        exact += p;
        sum = static_cast<float>(bf16(sum + static_cast<float>(bf16(static_cast<float>(p)))));
      }
      worst = std::max(worst,
                       std::abs(static_cast<double>(sum) - exact) / std::max(1.0, std::abs(exact)));
    }
    EXPECT_LT(worst, partials_share(dtype::bf16, ranks)) << ranks;
    EXPECT_GT(worst, partials_share(dtype::bf16, ranks) / 10) << ranks;
  }
}

}  // namespace

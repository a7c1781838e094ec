#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <untax/sparse/profile.hpp>

#include "support.hpp"

namespace untax::sparse {
namespace {

using test::refusal;

row_profile profile(const csr<double, std::int64_t>& m) {
  return profile_of(std::span<const std::int64_t>(m.offsets), m.cols);
}

TEST(profiles, hold_the_quantiles_of_the_rows) {
  const auto m = test::with_rows<double, std::int64_t>({4, 0, 1, 2, 3}, 10, 1);
  const row_profile p = profile(m);
  EXPECT_EQ(p.rows, 5);
  EXPECT_EQ(p.cols, 10);
  EXPECT_EQ(p.nnz, 10);
  EXPECT_EQ(p.row_min, 0);
  EXPECT_EQ(p.row_q1, 1);
  EXPECT_EQ(p.row_median, 2);
  EXPECT_EQ(p.row_q3, 3);
  EXPECT_EQ(p.row_max, 4);
  EXPECT_EQ(p.row_mean, 2);
  EXPECT_EQ(p.row_variance, 2);
  EXPECT_EQ(profile(csr<double, std::int64_t>{}).row_max, 0);
}

TEST(profiles, know_rows_of_any_length) {
  for (const std::int64_t length : {(1 << 20) - 1, 1 << 20, 1 << 21}) {
    const std::vector<std::int64_t> offsets = {0, 0, length, length + 7};
    const row_profile p = profile_of(std::span<const std::int64_t>(offsets), 1 << 22);
    EXPECT_EQ(p.row_max, static_cast<double>(length));
    EXPECT_EQ(p.row_median, 7);
  }
}

TEST(twins, are_like_the_matrices_of_a_public_table) {
  const auto profiles = read_profiles(UNTAX_SOURCE_DIR "/bench/select/V100.csv.gz");
  ASSERT_GT(profiles.size(), 2800U);
  EXPECT_EQ(profiles[0].name, "Guettel/TEM152078");
  int tried = 0;
  std::vector<double> away;
  for (const auto& [name, like] : profiles) {
    if (like.nnz > 200'000 || ++tried % 8 != 0) continue;
    const auto m = twin_of(like, 0, 7);
    require_valid(m.view());
    const row_profile p = profile(m);
    EXPECT_EQ(p.rows, like.rows);
    EXPECT_EQ(p.cols, like.cols);
    EXPECT_EQ(p.nnz, like.nnz) << name;
    EXPECT_EQ(p.row_min, like.row_min) << name;
    EXPECT_EQ(p.row_max, like.row_max) << name;
    const double spread = std::sqrt(like.row_variance);
    away.push_back(std::abs(std::sqrt(p.row_variance) - spread) / std::max(spread, 1.0));
    for (const auto& [one, other] : {std::pair{p.row_q1, like.row_q1},
                                     {p.row_median, like.row_median},
                                     {p.row_q3, like.row_q3}})
      away.push_back(std::abs(one - other) / std::max(other, 2.0));
  }
  EXPECT_GT(tried, 400);
  std::ranges::sort(away);
  EXPECT_LT(away[away.size() * 9 / 10], 0.2);
  EXPECT_LT(away[away.size() / 2], 0.02);
}

TEST(twins, are_the_same_for_the_same_seed_only) {
  const row_profile like{100, 80, 500, 1, 3, 5, 6, 20, 5, 9};
  const auto twin = twin_of(like, 0, 1);
  EXPECT_EQ(twin.columns, twin_of(like, 0, 1).columns);
  EXPECT_EQ(twin.values, twin_of(like, 0, 1).values);
  EXPECT_NE(twin.columns, twin_of(like, 0, 2).columns);
}

TEST(twins, keep_to_their_band) {
  const row_profile like{1000, 1000, 5000, 1, 3, 5, 6, 20, 5, 9};
  EXPECT_GT(band_of(twin_of(like, 0, 1).view()), 500);
  for (const std::int64_t band : {15, 40, 200}) {
    const std::int64_t result = band_of(twin_of(like, band, 1).view());
    // At the corners the band is moved into the matrix.
    EXPECT_LE(result, 2 * band + 1);
    EXPECT_GE(result, band / 2);
  }
  // A row that is longer than the band has its elements anyway.
  EXPECT_EQ(profile(twin_of(like, 1, 1)).row_max, 20);
}

TEST(twins, of_odd_profiles) {
  EXPECT_EQ(twin_of({0, 5, 0}, 0, 1).rows, 0);
  EXPECT_EQ(twin_of({5, 0, 0}, 0, 1).offsets.back(), 0);
  EXPECT_EQ(twin_of({1, 9, 4, 4, 4, 4, 4, 4, 4, 0}, 0, 1).offsets.back(), 4);
  EXPECT_EQ(twin_of({3, 9, 27, 9, 9, 9, 9, 9, 9, 0}, 0, 1).offsets.back(), 27);
  for (const row_profile& wrong :
       {row_profile{-1, 5, 0}, row_profile{5, 5, 9, 0, 1, 2, 1, 4},
        row_profile{5, 5, 9, 0, 1, 2, 3, 6}, row_profile{5, 5, 26, 0, 1, 2, 3, 5},
        row_profile{5, 5, 4, 1, 1, 2, 3, 5},
        row_profile{5, std::int64_t{1} << 40, 9, 0, 1, 2, 3, 4}})
    EXPECT_TRUE(refusal([&] { (void)twin_of(wrong, 0, 1); }).starts_with("a twin: "));
}

}  // namespace
}  // namespace untax::sparse

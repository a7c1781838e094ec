#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include <untax/sparse/profile.hpp>
#include <untax/sparse/stencil.hpp>

#include "support.hpp"

namespace untax::sparse {
namespace {

TEST(stencils, have_points_around_each_row) {
  const auto m = matrix_of({"cross", 2, 1, false}, 5 * 9);
  ASSERT_EQ(m.rows, 9);  // 3 x 3
  const std::vector<std::int32_t> middle(m.columns.begin() + m.offsets[4],
                                         m.columns.begin() + m.offsets[5]);
  EXPECT_EQ(middle, (std::vector<std::int32_t>{1, 3, 4, 5, 7}));
  const std::vector<std::int32_t> corner(m.columns.begin(), m.columns.begin() + m.offsets[1]);
  EXPECT_EQ(corner, (std::vector<std::int32_t>{0, 1, 3}));
}

TEST(stencils, are_symmetric_and_as_large_as_asked) {
  for (const stencil& all_stencil : all_stencils) {
    SCOPED_TRACE(all_stencil.name);
    const std::int64_t most = 20'000;
    const auto m = matrix_of(all_stencil, most);
    const row_profile p = profile_of(std::span<const std::int64_t>(m.offsets), m.cols);
    EXPECT_EQ(p.row_max, static_cast<double>(all_stencil.points()));
    EXPECT_LE(m.rows * all_stencil.points(), most);
    const auto longer = static_cast<std::int64_t>(
        std::llround(std::pow(static_cast<double>(m.rows), 1.0 / all_stencil.dimensions)) + 1);
    std::int64_t rows = 1;
    for (int axis = 0; axis < all_stencil.dimensions; ++axis) rows *= longer;
    EXPECT_GT(rows * all_stencil.points(), most);
    // The same points reach a row as it reaches: sums of columns are those of rows.
    std::vector<double> of_rows(static_cast<std::size_t>(m.rows));
    std::vector<double> of_columns(static_cast<std::size_t>(m.rows));
    for (std::int64_t r = 0; r < m.rows; ++r) {
      for (std::int64_t i = m.offsets[static_cast<std::size_t>(r)];
           i < m.offsets[static_cast<std::size_t>(r) + 1]; ++i) {
        const auto at = static_cast<std::size_t>(i);
        EXPECT_TRUE(i == m.offsets[static_cast<std::size_t>(r)] ||
                    m.columns[at - 1] < m.columns[at]);
        of_rows[static_cast<std::size_t>(r)] += m.values[at];
        of_columns[static_cast<std::size_t>(m.columns[at])] += m.values[at];
      }
    }
    EXPECT_EQ(of_rows, of_columns);
  }
}

TEST(stencils, invalid_ones_are_refused) {
  using test::refusal;
  EXPECT_EQ(refusal([] {
              (void)matrix_of({"flat", 0, 1, true}, 100);
            }),
            "a stencil of 0 dimensions that reaches 1 points; there are those of 1 to 3 dimensions "
            "that reach 1 or more");
  EXPECT_EQ(refusal([] { (void)matrix_of(all_stencils[3], 26); }),
            "a row of the stencil 27 points, 3-D has 27 elements, and the matrix may have 26");
}

}  // namespace
}  // namespace untax::sparse

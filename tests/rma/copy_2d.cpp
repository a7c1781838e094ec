#include <algorithm>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include <untax/core/error.hpp>
#include <untax/rma/copy.hpp>

#include "random_inputs.hpp"
#include "team.hpp"

namespace {

using rma_test::random_inputs;
using untax::lone_thread;
using untax::tile_bounds;
using untax::tile_view;

/// A matrix with room around it, so that a write beside a tile shows.
struct sheet {
  std::int64_t rows;
  std::int64_t cols;
  std::vector<std::int32_t> values;

  sheet(random_inputs& random, std::int64_t row_count, std::int64_t col_count)
      : rows(row_count),
        cols(col_count),
        values(random.values<std::int32_t>(row_count * col_count)) {}
  [[nodiscard]] tile_view<std::int32_t> view() { return {values.data(), rows, cols}; }
  [[nodiscard]] std::int32_t& at(std::int64_t row, std::int64_t col) {
    return values[static_cast<std::size_t>(row * cols + col)];
  }
};

/// A tile of random place and size in a sheet of random size.
struct placed_tile {
  std::int64_t row;
  std::int64_t col;
  sheet whole;

  placed_tile(random_inputs& random, std::int64_t rows, std::int64_t cols)
      : row(random.number(0, 3)),
        col(random.number(0, 3)),
        whole(random, rows + row + random.number(1, 3), cols + col + random.number(1, 3)) {}
  [[nodiscard]] tile_view<std::int32_t> view(std::int64_t rows, std::int64_t cols) {
    return {whole.view().at(row, col), rows, cols, whole.cols};
  }
};

/// The reference of a copy, element by element.
template <class Wanted>
void reference(placed_tile& to, placed_tile& from, std::int64_t rows, std::int64_t cols,
               const Wanted& wanted) {
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < cols; ++c) {
      if (wanted(r, c))
        to.whole.at(to.row + r, to.col + c) = from.whole.at(from.row + r, from.col + c);
    }
  }
}

TEST(copy_2d, agrees_with_a_plain_loop_for_any_bounds) {
  random_inputs random;
  SCOPED_TRACE(random.trace());
  for (int round = 0; round < 500; ++round) {
    const std::int64_t rows = random.number(0, 12);
    const std::int64_t cols = random.number(0, 12);
    // Bounds may lie beyond the tile, and at or before its beginning.
    const tile_bounds bounds{random.number(-2, 14), random.number(-2, 14)};
    placed_tile from(random, rows, cols);
    placed_tile to(random, rows, cols);
    placed_tile wanted = to;
    reference(wanted, from, rows, cols,
              [&](std::int64_t r, std::int64_t c) { return r < bounds.rows && c < bounds.cols; });
    untax::copy(lone_thread(), to.view(rows, cols), from.view(rows, cols), bounds);
    ASSERT_EQ(to.whole.values, wanted.whole.values)
        << rows << " x " << cols << " within " << bounds.rows << " x " << bounds.cols;
  }
}

TEST(copy_2d, agrees_with_a_plain_loop_for_any_mask) {
  random_inputs random;
  SCOPED_TRACE(random.trace());
  for (int round = 0; round < 300; ++round) {
    const std::int64_t rows = random.number(0, 9);
    const std::int64_t cols = random.number(0, 9);
    placed_tile from(random, rows, cols);
    placed_tile to(random, rows, cols);
    placed_tile wanted = to;
    const auto bits = random.values<std::int32_t>(rows * cols);
    const auto mask = [&](std::int64_t r, std::int64_t c) {
      return bits[static_cast<std::size_t>(r * cols + c)] % 2 == 0;
    };
    reference(wanted, from, rows, cols, mask);
    untax::copy(lone_thread(), to.view(rows, cols), from.view(rows, cols), mask);
    ASSERT_EQ(to.whole.values, wanted.whole.values);
  }
}

TEST(copy_2d, a_team_copies_the_same_as_one_thread) {
  random_inputs random;
  SCOPED_TRACE(random.trace());
  for (int round = 0; round < 20; ++round) {
    const std::int64_t rows = random.number(0, 30);
    const std::int64_t cols = random.number(0, 30);
    const bool masked = round % 2 == 0;
    placed_tile from(random, rows, cols);
    placed_tile to(random, rows, cols);
    placed_tile wanted = to;
    const auto even = [](std::int64_t r, std::int64_t c) { return (r + c) % 2 == 0; };
    reference(wanted, from, rows, cols,
              [&](std::int64_t r, std::int64_t c) { return !masked || even(r, c); });
    rma_test::run_team(static_cast<int>(random.number(1, 4)),
                       [&](const rma_test::team_member& member) {
                         if (masked) {
                           untax::copy(member, to.view(rows, cols), from.view(rows, cols), even);
                         } else {
                           untax::copy(member, to.view(rows, cols), from.view(rows, cols));
                         }
                       });
    ASSERT_EQ(to.whole.values, wanted.whole.values);
  }
}

TEST(copy_2d, a_team_shares_a_dense_tile) {
  const std::vector<int> from = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  std::vector<int> to(from.size());
  rma_test::run_team(2, [&](const rma_test::team_member& member) {
    untax::copy(member, tile_view<int>(to.data(), 4, 3), tile_view<const int>(from.data(), 4, 3));
  });
  EXPECT_EQ(to, from);
}

TEST(copy_2d, only_elements_in_the_bounds_can_overlap) {
  std::vector<int> row = {1, 2, 0, 0, 0, 0, 0, 0, 0, 0};
  EXPECT_NO_THROW(untax::copy(lone_thread(), tile_view<int>(row.data() + 2, 4, 2),
                              tile_view<const int>(row.data(), 4, 2), {1, 2}));
  EXPECT_EQ(row, (std::vector<int>{1, 2, 1, 2, 0, 0, 0, 0, 0, 0}));
}

TEST(copy_2d, parts_tile_a_matrix_of_any_size) {
  random_inputs random;
  SCOPED_TRACE(random.trace());
  for (int round = 0; round < 100; ++round) {
    const std::int64_t rows = random.number(1, 40);
    const std::int64_t cols = random.number(1, 40);
    const std::int64_t tile_rows = random.number(1, 16);
    const std::int64_t tile_cols = random.number(1, 16);
    sheet from(random, rows, cols);
    sheet to(random, rows, cols);
    for (std::int64_t r = 0; r < rows; r += tile_rows) {
      for (std::int64_t c = 0; c < cols; c += tile_cols) {
        untax::copy(lone_thread(), to.view().part(r, c, tile_rows, tile_cols),
                    from.view().part(r, c, tile_rows, tile_cols));
      }
    }
    ASSERT_EQ(to.values, from.values)
        << rows << " x " << cols << " in " << tile_rows << " x " << tile_cols;
  }
}

TEST(copy_2d, refuses_tiles_that_share_an_element_and_no_others) {
  random_inputs random;
  SCOPED_TRACE(random.trace());
  int refused = 0;
  for (int round = 0; round < 3000; ++round) {
    // Two tiles anywhere in one buffer, each with its own stride.
    const std::int64_t rows = random.number(1, 5);
    const std::int64_t cols = random.number(1, 5);
    std::vector<std::int32_t> buffer(160);
    const auto tile = [&] {
      return tile_view<std::int32_t>(buffer.data() + random.number(0, 90), rows, cols,
                                     random.number(cols, 12));
    };
    const auto elements = [&](const tile_view<std::int32_t>& t) {
      std::set<std::int32_t*> addresses;
      for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t c = 0; c < cols; ++c) addresses.insert(t.at(r, c));
      }
      return addresses;
    };
    const auto to = tile();
    const auto from = tile();
    const auto a = elements(to);
    const bool shared =
        std::ranges::any_of(elements(from), [&](std::int32_t* p) { return a.contains(p); });
    bool threw = false;
    try {
      untax::copy(lone_thread(), to, from);
    } catch (const untax::error& e) {
      threw = e.code() == untax::errc::invalid_argument;
    }
    ASSERT_EQ(threw, shared) << rows << " x " << cols << " at " << to.data - buffer.data() << " by "
                             << to.stride << " from " << from.data - buffer.data() << " by "
                             << from.stride;
    refused += shared ? 1 : 0;
  }
  EXPECT_GT(refused, 100);
  EXPECT_LT(refused, 2900);
}

}  // namespace

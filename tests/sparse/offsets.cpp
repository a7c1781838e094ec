// Arithmetic of offsets beyond 32 bits, without memory for the elements.

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include <untax/sparse/profile.hpp>
#include <untax/sparse/split.hpp>

#include "support.hpp"

namespace untax::sparse {
namespace {

constexpr std::int64_t two_31 = std::int64_t{1} << 31;

/// The path, a step at a time.
template <class Offset>
path_point walked(const std::vector<Offset>& offsets, std::int64_t steps) {
  path_point at;
  for (std::int64_t i = 0; i < steps; ++i) {
    if (at.entries < offsets[static_cast<std::size_t>(at.rows) + 1]) {
      ++at.entries;
    } else {
      ++at.rows;
    }
  }
  return at;
}

TEST(offsets, merge_path_search_equals_single_steps) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 40; ++i) {
    std::vector<std::int32_t> offsets = {0};
    const std::uint64_t rows = random() % 9;
    for (std::uint64_t r = 0; r < rows; ++r)
      offsets.push_back(offsets.back() +
                        static_cast<std::int32_t>(random() % 3 == 0 ? 0 : random() % 7));
    const std::int64_t count = static_cast<std::int64_t>(rows) + offsets.back();
    for (std::int64_t steps = 0; steps <= count; ++steps)
      EXPECT_EQ(merge_path(std::span<const std::int32_t>(offsets), steps), walked(offsets, steps));
  }
}

TEST(offsets, of_more_than_32_bits_are_split_as_small_ones) {
  // Rows of 2^31 elements each, and an empty one.
  const std::vector<std::int64_t> offsets = {0, two_31, two_31, 2 * two_31, 5 * two_31};
  const std::span<const std::int64_t> all(offsets);
  const std::int64_t steps = 4 + offsets.back();
  for (const int parts : {1, 2, 3, 7, 1024}) {
    path_point last;
    for (int part = 0; part <= parts; ++part) {
      const std::int64_t at = begin_of_part(steps, part, parts);
      const path_point point = merge_path(all, at);
      EXPECT_EQ(point.rows + point.entries, at);
      EXPECT_GE(point.rows, last.rows);
      EXPECT_GE(point.entries, last.entries);
      // All rows that have ended have their elements, and the next one has not ended.
      EXPECT_LE(offsets[static_cast<std::size_t>(point.rows)], point.entries);
      if (point.rows < 4) {
        EXPECT_LE(point.entries, offsets[static_cast<std::size_t>(point.rows) + 1]);
      }
      last = point;
    }
    EXPECT_EQ(last, (path_point{4, offsets.back()}));
  }
  EXPECT_EQ(first_row_from(all, 0), 0);
  EXPECT_EQ(first_row_from(all, 1), 1);
  EXPECT_EQ(first_row_from(all, two_31), 1);
  EXPECT_EQ(first_row_from(all, two_31 + 1), 3);
  EXPECT_EQ(first_row_from(all, 2 * two_31 + 1), 4);
}

TEST(offsets, parts_of_large_counts_do_not_overflow) {
  const std::int64_t many = std::int64_t{1} << 62;
  EXPECT_EQ(begin_of_part(many, 0, 1024), 0);
  EXPECT_EQ(begin_of_part(many, 1024, 1024), many);
  EXPECT_EQ(begin_of_part(many, 512, 1024), many / 2);
  for (const std::int64_t count : {0, 1, 10, 1023}) {
    for (int part = 0; part < 7; ++part) {
      const std::int64_t size = begin_of_part(count, part + 1, 7) - begin_of_part(count, part, 7);
      EXPECT_GE(size, count / 7);
      EXPECT_LE(size, count / 7 + 1);
    }
  }
}

TEST(offsets, of_more_than_32_bits_have_a_profile) {
  const std::vector<std::int64_t> offsets = {0, two_31, two_31, 2 * two_31, 5 * two_31};
  const row_profile p = profile_of(std::span<const std::int64_t>(offsets), 7 * two_31);
  EXPECT_EQ(p.rows, 4);
  EXPECT_EQ(p.nnz, 5 * two_31);
  EXPECT_EQ(p.row_min, 0);
  EXPECT_EQ(p.row_median, two_31);
  EXPECT_EQ(p.row_max, 3.0 * two_31);
  EXPECT_EQ(p.row_mean, 1.25 * two_31);
  EXPECT_NEAR(p.row_variance, 1.1875 * two_31 * two_31, 1e-9 * two_31 * two_31);
}

TEST(offsets, that_are_too_short_are_refused) {
  EXPECT_EQ(test::refusal([] { require_offsets_for<std::int32_t>(two_31 - 1); }), "");
  EXPECT_NE(test::refusal([] { require_offsets_for<std::int32_t>(two_31); }).find("2147483648"),
            std::string::npos);
  EXPECT_EQ(test::refusal([] { require_offsets_for<std::int64_t>(two_31); }), "");
}

}  // namespace
}  // namespace untax::sparse

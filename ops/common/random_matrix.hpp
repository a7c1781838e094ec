#pragma once

#include <cstdint>

#include <untax/core/matrix.hpp>
#include <untax/tile/shard.hpp>

namespace untax {

/// A matrix of any size whose elements are drawn from N(0, 1), each a function of (seed, row,
/// column): any rank can make any part of it, in any order, and gets the same values.
struct random_matrix {
  std::uint64_t seed = 0;

  /// Element (row, col) before it is rounded to an element type. Sixteen thousand quantiles of the
  /// normal distribution, picked by a hash: quick enough for weights of gigabytes.
  [[nodiscard]] float at(std::int64_t row, std::int64_t col) const;
  /// to = the part [rows x cols] of the matrix, rounded to the element type of `to`.
  void fill(const matrix& to, range rows, range cols) const;
};

/// Row `row` of a matrix.
[[nodiscard]] matrix row_of(const matrix& m, std::int64_t row) noexcept;

/// Sets every element to NaN, which shows elements that are never written.
void poison(const matrix& m);

}  // namespace untax

#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include <untax/sparse/csr.hpp>

namespace untax::sparse {

/// A stencil of a regular grid: the points whose elements a row of a matrix has, which are the
/// point itself and points around it.
struct stencil {
  std::string_view name;
  int dimensions = 1;     ///< of the grid: 1, 2 or 3; it has the same length along each
  int reach = 1;          ///< the largest distance of a point along an axis
  bool diagonals = true;  ///< whether it has points that differ along several axes

  /// The number of elements of a row whose points are all inside the grid.
  [[nodiscard]] std::int64_t points() const noexcept;
};

/// The stencils of `untax bench spmv --stencils`: the Laplacians of 5, 7, 9 and 27 points, and
/// bands of 65 and 129 columns.
inline constexpr std::array<stencil, 6> all_stencils = {
    stencil{"5 points, 2-D", 2, 1, false}, stencil{"7 points, 3-D", 3, 1, false},
    stencil{"9 points, 2-D", 2, 1, true},  stencil{"27 points, 3-D", 3, 1, true},
    stencil{"band of 65", 1, 32, true},    stencil{"band of 129", 1, 64, true}};

/// The matrix of a stencil, on the largest grid with which it has at most 2^31 - 1 rows and at most
/// `most_elements` elements, counted as if there were no border. Points are in row-major order. The
/// diagonal has the number of other elements of an inner row; the others are -1. Throws
/// `invalid_argument` for dimensions other than 1 to 3, for a reach below 1, and if not even a grid
/// of one point fits.
[[nodiscard]] csr<double, std::int64_t> matrix_of(const stencil& grid, std::int64_t most_elements);

}  // namespace untax::sparse

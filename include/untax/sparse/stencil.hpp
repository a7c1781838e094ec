#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include <untax/sparse/csr.hpp>

namespace untax::sparse {

/// Which points of a regular grid a row of a matrix has: the point itself and those around it.
struct stencil {
  std::string_view name;
  int dimensions = 1;     ///< of the grid, which is as long along each: 1, 2 or 3
  int reach = 1;          ///< how many points away the farthest are, along an axis
  bool diagonals = true;  ///< whether points that differ along several axes are among them

  /// Elements of a row whose points all lie inside the grid.
  [[nodiscard]] std::int64_t points() const noexcept;
};

/// Those that `untax bench spmv --stencils` measures: the Laplacians of 5, 7, 9 and 27 points, and
/// bands of 65 and 129 columns.
inline constexpr std::array<stencil, 6> all_stencils = {
    stencil{"5 points, 2-D", 2, 1, false}, stencil{"7 points, 3-D", 3, 1, false},
    stencil{"9 points, 2-D", 2, 1, true},  stencil{"27 points, 3-D", 3, 1, true},
    stencil{"band of 65", 1, 32, true},    stencil{"band of 129", 1, 64, true}};

/// The matrix of a stencil on the largest grid that gives it at most `most_elements`, counted
/// without the border, and 2^31 - 1 rows; points are in row-major order. The diagonal has the
/// number of other elements of an inner row, the others are -1. Throws `invalid_argument` for
/// dimensions other than 1 to 3, a reach below 1, and where not even a grid of one point fits.
[[nodiscard]] csr<double, std::int64_t> matrix_of(const stencil& of, std::int64_t most_elements);

}  // namespace untax::sparse

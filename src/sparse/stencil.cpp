#include <untax/sparse/stencil.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include <fmt/format.h>

#include <untax/core/error.hpp>

namespace untax::sparse {
namespace {

using place = std::array<std::int64_t, 3>;  ///< x, y and z; 0 along axes that a grid lacks

/// The offsets of a row's points from its own point, by ascending column.
std::vector<place> neighbours(const stencil& grid) {
  const auto reach = [&](int axis) { return axis < grid.dimensions ? grid.reach : 0; };
  std::vector<place> places;
  for (std::int64_t z = -reach(2); z <= reach(2); ++z)
    for (std::int64_t y = -reach(1); y <= reach(1); ++y)
      for (std::int64_t x = -reach(0); x <= reach(0); ++x) {
        const int axes = (x != 0 ? 1 : 0) + (y != 0 ? 1 : 0) + (z != 0 ? 1 : 0);
        if (grid.diagonals || axes <= 1) places.push_back({x, y, z});
      }
  return places;
}

std::int64_t power(std::int64_t base, int exponent) {
  std::int64_t extent = 1;
  for (int i = 0; i < exponent; ++i) extent *= base;
  return extent;
}

}  // namespace

std::int64_t stencil::points() const noexcept {
  const std::int64_t along = 2 * static_cast<std::int64_t>(reach) + 1;
  return diagonals ? power(along, dimensions) : 1 + (along - 1) * dimensions;
}

csr<double, std::int64_t> matrix_of(const stencil& grid, std::int64_t most_elements) {
  if (grid.dimensions < 1 || grid.dimensions > 3 || grid.reach < 1)
    throw error(errc::invalid_argument,
                fmt::format("a stencil of {} dimensions that reaches {} points; there are those of "
                            "1 to 3 dimensions that reach 1 or more",
                            grid.dimensions, grid.reach));
  if (most_elements < grid.points())
    throw error(errc::invalid_argument,
                fmt::format("a row of the stencil {} has {} elements, and the matrix may have {}",
                            grid.name, grid.points(), most_elements));
  const std::int64_t most_rows = std::min<std::int64_t>(most_elements / grid.points(),
                                                        std::numeric_limits<std::int32_t>::max());
  std::int64_t side = 1;
  while (power(side + 1, grid.dimensions) <= most_rows) ++side;

  csr<double, std::int64_t> result;
  result.rows = result.cols = power(side, grid.dimensions);
  result.columns.reserve(static_cast<std::size_t>(result.rows * grid.points()));
  result.values.reserve(result.columns.capacity());
  const std::vector<place> around = neighbours(grid);
  const auto inside = [&](std::int64_t at, int axis) {
    return at >= 0 && at < (axis < grid.dimensions ? side : 1);
  };
  for (std::int64_t row = 0; row < result.rows; ++row) {
    const place at = {row % side, row / side % side, row / side / side};
    for (const place& to : around) {
      if (!inside(at[0] + to[0], 0) || !inside(at[1] + to[1], 1) || !inside(at[2] + to[2], 2))
        continue;
      const std::int64_t column = row + to[0] + side * (to[1] + side * to[2]);
      result.columns.push_back(static_cast<std::int32_t>(column));
      result.values.push_back(column == row ? static_cast<double>(grid.points() - 1) : -1);
    }
    result.offsets.push_back(std::ssize(result.columns));
  }
  return result;
}

}  // namespace untax::sparse

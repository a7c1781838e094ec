#pragma once

#include <untax/core/host_device.hpp>
#include <untax/order/order.hpp>

namespace untax::order {

/// Where a position lies in a grid that is gone through in bands, see `banded`. The grid is passed
/// by reference, since a kernel reads of its arguments only what it needs, when it does.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr cell in_bands(const int& x_tiles, const int& y_tiles,
                                                        const int& band, const int& segments,
                                                        int position) {
  // Divisions are slow here: keep them few.
  if (y_tiles == 1) return {position, 0};
  int before = 0;  // tiles along x, of segments
  int width = x_tiles;
  if (segments > 1) {
    width = x_tiles / segments;
    const int segment = position / (width * y_tiles);
    before = segment * width;
    position -= before * y_tiles;
  }
  const int first = position / (band * y_tiles) * band;
  const int in_band = position - first * y_tiles;
  // The last may be narrower.
  const int height = width - first < band ? width - first : band;
  const int y = in_band / height;
  return {before + first + in_band - y * height, y};
}

/// A grid is gone through in bands, so that those that run at the same time share what they read:
/// `band` tiles along x, then the next ones along y. The last band may be narrower. A band of 1
/// goes along y, one of `x_tiles` along x. The x axis may be cut into `segments` equal parts, gone
/// through one after the other.
struct banded {
  int x_tiles = 0;
  int y_tiles = 0;
  int band = 8;
  int segments = 1;

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr cell at(int position) const {
    return in_bands(x_tiles, y_tiles, band, segments, position);
  }

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int position(cell where) const {
    const int width = x_tiles / segments;
    const int before = where.x / width * width;
    const int x = where.x - before;
    const int first = x / band * band;
    const int height = width - first < band ? width - first : band;
    return (before + first) * y_tiles + where.y * height + x - first;
  }
};

/// The same, and every other band goes back: where one band ends, the next one begins.
struct snake {
  int x_tiles = 0;
  int y_tiles = 0;
  int band = 8;

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr cell at(int position) const {
    return turned(banded{x_tiles, y_tiles, band, 1}.at(position));
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int position(cell where) const {
    return banded{x_tiles, y_tiles, band, 1}.position(turned(where));
  }

 private:
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr cell turned(cell where) const {
    return {where.x, where.x / band % 2 == 0 ? where.y : y_tiles - 1 - where.y};
  }
};

/// Any way through the grid with its axes exchanged.
template <class Way>
struct transposed {
  Way way;  ///< through a grid of `y_tiles` by `x_tiles`
  int x_tiles = way.y_tiles;
  int y_tiles = way.x_tiles;

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr cell at(int position) const {
    const cell where = way.at(position);
    return {where.y, where.x};
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int position(cell where) const {
    return way.position(cell{where.y, where.x});
  }
};
template <class Way>
transposed(Way) -> transposed<Way>;

/// Diagonal after diagonal: tiles whose x + y is the same follow each other, from the top. It is
/// the order that wavefronts allow.
struct diagonals {
  int x_tiles = 0;
  int y_tiles = 0;

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr cell at(int position) const {
    // The last diagonal that begins at or before the position.
    int low = 0;
    int high = x_tiles + y_tiles - 2;
    while (low < high) {
      const int middle = (low + high + 1) / 2;
      if (before(middle) <= position) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    const int y = top(low) + position - before(low);
    return {low - y, y};
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int position(cell where) const {
    const int diagonal = where.x + where.y;
    return before(diagonal) + where.y - top(diagonal);
  }

 private:
  /// The least y of a diagonal.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int top(int diagonal) const {
    return diagonal < x_tiles ? 0 : diagonal - x_tiles + 1;
  }
  /// Tiles of the diagonals before: a triangle, less what sticks out on both sides. Below 2^62.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int before(int diagonal) const {
    return static_cast<int>(triangle(diagonal) - triangle(diagonal - x_tiles) -
                            triangle(diagonal - y_tiles));
  }
  [[nodiscard]] UNTAX_HOST_DEVICE static constexpr long long triangle(int side) {
    return side <= 0 ? 0 : static_cast<long long>(side) * (side + 1) / 2;
  }
};

}  // namespace untax::order

#pragma once

#include <untax/core/host_device.hpp>
#include <untax/order/divider.hpp>
#include <untax/order/order.hpp>

namespace untax::order {

/// Visits a grid in bands, so that tiles that run at the same time share their reads. A band is
/// `band` tiles wide along x; within it x changes first, then y. The last band may be narrower. A
/// band of 1 goes along y, one of `x_tiles` along x. The x axis may be divided into `segments`
/// equal parts, visited one after the other; `segments` has to divide `x_tiles`.
struct banded {
  int x_tiles = 0;
  int y_tiles = 0;
  int band = 8;
  int segments = 1;

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr cell at(int position) const {
    const int width = x_tiles / segments;
    const int before = position / (width * y_tiles) * width;  // tiles along x, of segments
    position -= before * y_tiles;
    const int first = position / (band * y_tiles) * band;
    const int in_band = position - first * y_tiles;
    const int height = width - first < band ? width - first : band;
    const int y = in_band / height;
    return {before + first + in_band - y * height, y};
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

/// `banded::at` without divisions, which are slow on a GPU.
class cell_finder {
 public:
  constexpr cell_finder() = default;
  constexpr explicit cell_finder(const banded& grid)
      : y_tiles_(grid.y_tiles),
        band_(grid.band),
        width_(grid.x_tiles / grid.segments),
        by_segment_(width_ * y_tiles_),
        by_band_(band_ * y_tiles_),
        by_height_(band_),
        by_last_height_(width_ % band_ > 0 ? width_ % band_ : band_) {}

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr cell at(int position) const {
    const int segment = by_segment_.quotient(position);
    const int in_segment = position - segment * width_ * y_tiles_;
    const int first = by_band_.quotient(in_segment) * band_;
    const int in_band = in_segment - first * y_tiles_;
    const bool is_last = width_ - first < band_;
    const int height = is_last ? width_ - first : band_;
    const int y = (is_last ? by_last_height_ : by_height_).quotient(in_band);
    return {segment * width_ + first + in_band - y * height, y};
  }

 private:
  int y_tiles_ = 1;
  int band_ = 1;
  int width_ = 1;  // of a segment
  divider by_segment_;
  divider by_band_;
  divider by_height_;
  divider by_last_height_;  // of a segment's last band
};

/// As `banded`, but every other band goes back: the next band begins where one ends.
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

/// Any way through a grid with its axes exchanged.
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

/// Diagonal after diagonal: tiles with the same x + y follow each other, by rising y. This is the
/// order that wavefronts allow.
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
  /// The number of tiles of all diagonals before this one: a triangle without the two corners that
  /// are outside the grid.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int before(int diagonal) const {
    return static_cast<int>(triangle(diagonal) - triangle(diagonal - x_tiles) -
                            triangle(diagonal - y_tiles));
  }
  [[nodiscard]] UNTAX_HOST_DEVICE static constexpr long long triangle(int side) {
    return side <= 0 ? 0 : static_cast<long long>(side) * (side + 1) / 2;
  }
};

}  // namespace untax::order

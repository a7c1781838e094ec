#pragma once

#include <untax/core/host_device.hpp>
#include <untax/order/order.hpp>

namespace untax::order {

/// The order of the four quarters of a square, and the orientation of the curve within each.
struct quarters {
  bool is_hilbert = false;
  bool is_swapped = false;  ///< x and y exchanged
  bool is_turned = false;   ///< by half a turn

  /// The position of the i-th quarter.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr cell quarter(int i) const {
    if (!is_hilbert) return {i % 2, i / 2};
    const int y = i == 1 || i == 2 ? 1 : 0;
    const int x = i / 2;
    const cell where = is_swapped ? cell{y, x} : cell{x, y};
    return is_turned ? cell{1 - where.x, 1 - where.y} : where;
  }
  /// The orientation of the curve within the i-th quarter.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr quarters within(int i) const {
    if (!is_hilbert || i == 1 || i == 2) return *this;
    return {true, !is_swapped, i == 3 ? !is_turned : is_turned};
  }
};

/// A curve through the smallest square of a power of two that holds the grid, without the cells
/// outside of the grid. So it is a bijection for any size. Both directions take one step for each
/// level of quarters.
template <bool IsHilbert>
struct curve {
  int x_tiles = 0;
  int y_tiles = 0;

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr cell at(int position) const {
    cell corner;
    quarters way{IsHilbert, false, false};
    for (int side = square() / 2; side > 0; side /= 2) {
      for (int i = 0; i < 4; ++i) {
        const cell q = way.quarter(i);
        const cell begin{corner.x + q.x * side, corner.y + q.y * side};
        const int count = inside(begin, side);
        if (position < count) {
          corner = begin;
          way = way.within(i);
          break;
        }
        position -= count;
      }
    }
    return corner;
  }

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int position(cell where) const {
    cell corner;
    quarters way{IsHilbert, false, false};
    int before = 0;
    for (int side = square() / 2; side > 0; side /= 2) {
      for (int i = 0; i < 4; ++i) {
        const cell q = way.quarter(i);
        const cell begin{corner.x + q.x * side, corner.y + q.y * side};
        const bool is_here = where.x >= begin.x && where.x - begin.x < side && where.y >= begin.y &&
                             where.y - begin.y < side;
        if (is_here) {
          corner = begin;
          way = way.within(i);
          break;
        }
        before += inside(begin, side);
      }
    }
    return before;
  }

 private:
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int square() const {
    const int longest = x_tiles > y_tiles ? x_tiles : y_tiles;
    int side = 1;
    while (side < longest && side < (1 << 30)) side *= 2;
    return side;
  }
  /// The number of cells of the grid in a square.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int inside(cell begin, int side) const {
    return length(x_tiles - begin.x, side) * length(y_tiles - begin.y, side);
  }
  [[nodiscard]] UNTAX_HOST_DEVICE static constexpr int length(int left, int side) {
    if (left <= 0) return 0;
    return left < side ? left : side;
  }
};

/// The Z curve: the bits of x and y alternate.
using morton = curve<false>;
/// Hilbert's curve: on a square of a power of two, tiles that follow each other touch.
using hilbert = curve<true>;

}  // namespace untax::order

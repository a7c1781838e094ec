#pragma once

#include <untax/core/host_device.hpp>
#include <untax/order/order.hpp>
#include <untax/order/raster.hpp>

namespace untax::order {

/// Divides the grid into `across` times `down` rectangles of nearly the same size, and visits them
/// one after the other, each in bands. After a `full_remap` over as many domains each domain has
/// about one rectangle. Of all shapes of a part, this one has the least to read.
struct rectangles {
  int x_tiles = 0;
  int y_tiles = 0;
  int across = 1;  ///< at most x_tiles
  int down = 1;    ///< at most y_tiles
  int band = 8;

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr cell at(int position) const {
    int j = 0;
    while (position >= row(j + 1) * x_tiles) ++j;
    const int top = row(j);
    const int height = row(j + 1) - top;
    position -= top * x_tiles;
    int i = 0;
    while (position >= column(i + 1) * height) ++i;
    const int left = column(i);
    const cell where = inner(i, height).at(position - left * height);
    return {left + where.x, top + where.y};
  }

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int position(cell where) const {
    int j = 0;
    while (where.y >= row(j + 1)) ++j;
    int i = 0;
    while (where.x >= column(i + 1)) ++i;
    const int height = row(j + 1) - row(j);
    return row(j) * x_tiles + column(i) * height +
           inner(i, height).position(cell{where.x - column(i), where.y - row(j)});
  }

 private:
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int column(int i) const {
    return static_cast<int>(static_cast<long long>(x_tiles) * i / across);
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int row(int j) const {
    return static_cast<int>(static_cast<long long>(y_tiles) * j / down);
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr banded inner(int i, int height) const {
    return {column(i + 1) - column(i), height, band, 1};
  }
};

}  // namespace untax::order

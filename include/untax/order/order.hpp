#pragma once

#include <untax/core/host_device.hpp>

// Block orders as values. An order is a bijection on the numbers [0, size()): `block(position)` is
// the logical block that the block started at `position` computes, `position(block)` its inverse.
// Everything here is plain arithmetic, constexpr, and the same on host and device. Arguments have
// to be in range, and sizes below 2^31; neither is checked.

namespace untax::order {

/// Blocks in the order of their numbers.
struct as_numbered {
  int blocks = 0;

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int size() const { return blocks; }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int block(int position) const { return position; }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int position(int block) const { return block; }
};

/// The last block first. If later blocks have more work, the longest ones start first.
struct last_first {
  int blocks = 0;

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int size() const { return blocks; }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int block(int position) const {
    return blocks - 1 - position;
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int position(int block) const {
    return blocks - 1 - block;
  }
};

/// The composition of two orders of the same size: `then` is applied to the block that `first`
/// gives for a position.
template <class First, class Then>
struct composed {
  First first;
  Then then;

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int size() const { return then.size(); }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int block(int position) const {
    return then.block(first.block(position));
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int position(int block) const {
    return first.position(then.position(block));
  }
};
template <class First, class Then>
composed(First, Then) -> composed<First, Then>;

/// An order that repeats `part` in each of `times` equal parts, one part after the other. Part i
/// has the blocks from i * part.size().
template <class Part>
struct repeated {
  int times = 1;
  Part part;

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int size() const { return times * part.size(); }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int block(int position) const {
    const int within = position % part.size();
    return position - within + part.block(within);
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int position(int block) const {
    const int within = block % part.size();
    return block - within + part.position(within);
  }
};
template <class Part>
repeated(int, Part) -> repeated<Part>;

/// The coordinates of a tile in a grid.
struct cell {
  int x = 0;
  int y = 0;

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr bool operator==(const cell& other) const {
    return x == other.x && y == other.y;
  }
};

/// The order in which a way through a grid visits its tiles, which are numbered row after row: tile
/// (x, y) has the number y * x_tiles + x. A way has `x_tiles`, `y_tiles`, `at(position)` and
/// `position(cell)`.
template <class Way>
struct through {
  Way way;

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int size() const { return way.x_tiles * way.y_tiles; }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int block(int position) const {
    const cell where = way.at(position);
    return where.y * way.x_tiles + where.x;
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int position(int block) const {
    return way.position(cell{block % way.x_tiles, block / way.x_tiles});
  }
};
template <class Way>
through(Way) -> through<Way>;

}  // namespace untax::order

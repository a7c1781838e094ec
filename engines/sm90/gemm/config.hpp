#pragma once

#include <untax/core/host_device.hpp>

namespace untax::sm90 {

/// What a kernel variant is compiled for.
///
/// The tensor cores multiply x * y^T, and x is the operand that comes in 64 rows for each math
/// warpgroup. In C = A * B^T, x is A where there are many rows of it. Where there are few, x is B,
/// the weights, so that no row of a tile is wasted, and C is written transposed.
struct tile_config {
  int columns = 256;     ///< rows of y in a tile, which are columns of x * y^T: 16 to 256
  int cluster = 2;       ///< blocks side by side along x, that share what they read of y
  int stages = 4;        ///< how many slices are on their way, or being multiplied
  bool swapped = false;  ///< x is B
  /// Tiles have 64 rows of x, which both math warpgroups multiply, one the first half of each
  /// slice, one the second. There are twice as many tiles, so fewer of them have to be cut.
  bool deep = false;
};

inline constexpr int panel_depth = 64;  // elements of a row that lie together: one swizzle
inline constexpr int math_groups = 2;
inline constexpr int group_threads = 128;
inline constexpr int group_rows = 64;      // rows of x that a math warpgroup multiplies
inline constexpr int chunk_side = 64;      // results leave in squares of 64 x 64, or lower ones
inline constexpr int staging_buffers = 2;  // chunks that a math warpgroup has room for

/// One warpgroup moves data, and two multiply.
inline constexpr int block_threads = (1 + math_groups) * group_threads;
inline constexpr int mover_registers = 40;
inline constexpr int math_registers = 232;

/// Math warpgroups that end up with sums: 64 rows of x each.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr int storing_groups(const tile_config& c) {
  return c.deep ? 1 : math_groups;
}
/// Rows of x in a tile.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr int tile_rows(const tile_config& c) {
  return storing_groups(c) * group_rows;
}
[[nodiscard]] UNTAX_HOST_DEVICE constexpr int panels_of(const tile_config& c) {
  return c.deep ? math_groups : 1;
}
/// Elements of a row in a slice.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr int slice_depth(const tile_config& c) {
  return panels_of(c) * panel_depth;
}
/// Rows of y that each block of a cluster reads for all of them.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr int own_columns(const tile_config& c) {
  return c.columns / c.cluster;
}
[[nodiscard]] UNTAX_HOST_DEVICE constexpr int chunks_of(const tile_config& c) {
  return c.columns <= chunk_side ? 1 : c.columns / chunk_side;
}
/// How far a chunk reaches along y.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr int chunk_columns(const tile_config& c) {
  return c.columns < chunk_side ? c.columns : chunk_side;
}
[[nodiscard]] UNTAX_HOST_DEVICE constexpr int chunk_bytes(const tile_config& c) {
  return chunk_side * (c.swapped ? chunk_columns(c) : chunk_side) * 2;
}
/// Bytes of fp32 sums that a block leaves behind if another one finishes its tile.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr int partial_bytes(const tile_config& c) {
  return tile_rows(c) * c.columns * 4;
}

}  // namespace untax::sm90

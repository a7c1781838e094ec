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
  int stages = 4;        ///< how many stages are on their way, or being multiplied
  bool swapped = false;  ///< x is B
  int staging = 2;       ///< chunks of results on their way out, for each math warpgroup
  /// Tiles have 64 rows of x, and a stage has two slices: each math warpgroup multiplies one. There
  /// are twice as many tiles, so fewer of them have to be cut.
  bool deep = false;
  /// Blocks of a cluster that share a tile, each a part of its slices: they add their sums up in
  /// shared memory. A cluster has one tile then.
  int pieces = 1;

  friend bool operator==(const tile_config&, const tile_config&) = default;
};

inline constexpr int slice_depth = 64;  // elements of a row in a slice: 128 bytes, one swizzle
inline constexpr int math_groups = 2;
inline constexpr int group_threads = 128;
inline constexpr int group_rows = 64;  // rows of x that a math warpgroup multiplies
inline constexpr int chunk_side = 64;  // results leave in squares of 64 x 64, or smaller parts

/// One warpgroup moves data, and two multiply.
inline constexpr int block_threads = (1 + math_groups) * group_threads;

/// Registers of the threads of the warpgroup that moves, and of those that multiply.
struct register_shares {
  int mover;
  int math;
};
inline constexpr register_shares registers_alone{40, 232};
inline constexpr register_shares registers_with_peers{104, 200};

[[nodiscard]] UNTAX_HOST_DEVICE constexpr int cluster_blocks(const tile_config& c) {
  return c.cluster * c.pieces;
}
/// Math warpgroups that end up with sums, of 64 rows of x each.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr int storing_groups(const tile_config& c) {
  return c.deep ? 1 : math_groups;
}
/// Rows of x in a tile.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr int tile_rows(const tile_config& c) {
  return storing_groups(c) * group_rows;
}
/// Slices in a stage.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr int stage_slices(const tile_config& c) {
  return c.deep ? math_groups : 1;
}
inline constexpr int most_stage_slices = math_groups;

/// Stages of weights that are asked for before pieces of A are moved, where few are: pieces come
/// through the same memory. Measured on two H200.
inline constexpr int asked_before_moving = 3;

/// Whether weights may be asked for while the kernels ahead end. Measured on two H200: with up to
/// 16 rows that is worth 2 to 4 %; from 32 rows on it holds up what brings A.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr bool reads_early(const tile_config& c) {
  return c.swapped && c.columns == 16;
}

/// How many columns of a tile a block ends up with, where several share it: an equal part, or all
/// that are stored together at least. Then the first ones have them.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr int share_columns(const tile_config& c) {
  constexpr int least = 16;
  const int part = c.columns / c.pieces;
  return part < least ? least : part;
}
/// Blocks that have such a share.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr int shares_of(const tile_config& c) {
  return c.columns / share_columns(c);
}
/// How far a chunk reaches along y: all chunks of a share equally far.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr int chunk_columns(const tile_config& c) {
  int columns = chunk_side;
  while (share_columns(c) % columns != 0) columns -= 8;
  return columns;
}
/// Chunks of what a block ends up with.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr int chunks_of(const tile_config& c) {
  return share_columns(c) / chunk_columns(c);
}
/// Rows and columns of the boxes in which the copy engine moves C. In shared memory rows of boxes
/// lie `chunk_side` elements apart, also where they are shorter.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr int c_box_rows(const tile_config& c) {
  return c.swapped ? chunk_columns(c) : chunk_side;
}
[[nodiscard]] UNTAX_HOST_DEVICE constexpr int c_box_columns(const tile_config& c) {
  return c.swapped ? chunk_side : chunk_columns(c);
}
[[nodiscard]] UNTAX_HOST_DEVICE constexpr int chunk_bytes(const tile_config& c) {
  return c_box_rows(c) * chunk_side * 2;
}
/// Bytes of fp32 sums that a block leaves behind if another one finishes its tile.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr int partial_bytes(const tile_config& c) {
  return tile_rows(c) * c.columns * 4;
}

}  // namespace untax::sm90

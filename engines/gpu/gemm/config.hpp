#pragma once

#include <untax/core/host_device.hpp>

namespace untax::gpu {

/// The parameters of a kernel variant.
///
/// The tensor cores multiply an M operand, of which each MMA warpgroup has 64 rows, by the
/// transpose of an N operand. In C = A * B^T, M is A where there are many rows of it. Where there
/// are few, A and B change places (`swap_ab`): M is B, the weights, so that no row of a tile is
/// wasted, and C is written transposed.
struct tile_config {
  int block_n = 256;         ///< rows of the N operand in a tile: 16 to 256
  int cluster = 2;           ///< blocks side by side along M, that share the N operand by multicast
  int stages = 4;            ///< of the ring: being loaded, or being multiplied
  bool swap_ab = false;      ///< A and B change places: M is B, N is A
  int epilogue_buffers = 2;  ///< sub-tiles of results that are being stored, of each MMA warpgroup
  /// Tiles have 64 rows of the M operand, and a stage has two k-blocks: each MMA warpgroup
  /// multiplies one. There are twice as many tiles, so fewer of them have to be cut.
  bool warpgroup_split_k = false;
  /// Blocks of a cluster that share a tile, each a part of its k-blocks: they add their sums up in
  /// shared memory. A cluster has one tile then.
  int cluster_split_k = 1;

  friend bool operator==(const tile_config&, const tile_config&) = default;
};

inline constexpr int block_k = 64;  // elements of a row in a k-block: 128 bytes, one swizzle
inline constexpr int mma_warpgroups = 2;
inline constexpr int warpgroup_threads = 128;
inline constexpr int warpgroup_rows = 64;  // rows of the M operand that an MMA warpgroup multiplies
inline constexpr int subtile_side = 64;    // results are stored in squares of 64 x 64, or less

/// One warpgroup moves data, and two multiply.
inline constexpr int block_threads = (1 + mma_warpgroups) * warpgroup_threads;

/// Registers of the threads of the warpgroup that moves, and of those that multiply.
struct register_shares {
  int producer;
  int consumer;
};
inline constexpr register_shares registers_alone{40, 232};
inline constexpr register_shares registers_with_peers{104, 200};
/// No sender runs beside the producer, and MMA warpgroups add peers' partials between their tiles.
inline constexpr register_shares registers_with_sums{56, 224};

[[nodiscard]] UNTAX_HOST_DEVICE constexpr int cluster_blocks(const tile_config& c) {
  return c.cluster * c.cluster_split_k;
}
/// MMA warpgroups that have sums at the end, of 64 rows of the M operand each.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr int storing_warpgroups(const tile_config& c) {
  return c.warpgroup_split_k ? 1 : mma_warpgroups;
}
/// Rows of the M operand in a tile.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr int tile_rows(const tile_config& c) {
  return storing_warpgroups(c) * warpgroup_rows;
}
/// K-blocks in a stage.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr int k_blocks_per_stage(const tile_config& c) {
  return c.warpgroup_split_k ? mma_warpgroups : 1;
}
inline constexpr int most_k_blocks_per_stage = mma_warpgroups;

/// Stages of weights that are loaded before sub-tiles of A are moved, where few are moved: these
/// come through the same memory. Measured on two H200.
inline constexpr int loaded_before_moving = 3;

/// Whether weights may be loaded while the kernels ahead end. Measured on two H200: with up to 16
/// rows that saves 2 to 4 %; from 32 rows on it delays A.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr bool reads_early(const tile_config& c) {
  return c.swap_ab && c.block_n == 16;
}

/// Whether L2 keeps weights that are read for several tiles of A. Of narrower tiles they are always
/// read as if they were not needed again: those that run at the same time find them all the same.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr bool keeps_weights(const tile_config& c) {
  return c.swap_ab && !c.warpgroup_split_k && c.block_n > 128;
}

/// How many columns of a tile a block ends up with, where several share it: an equal part, or all
/// that are stored together at least. Then the first ones have them.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr int share_columns(const tile_config& c) {
  constexpr int least = 16;
  const int part = c.block_n / c.cluster_split_k;
  return part < least ? least : part;
}
/// Blocks that have such a share.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr int shares_of(const tile_config& c) {
  return c.block_n / share_columns(c);
}
/// How far a sub-tile reaches along N: all sub-tiles of a share equally far.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr int subtile_columns(const tile_config& c) {
  int columns = subtile_side;
  while (share_columns(c) % columns != 0) columns -= 8;
  return columns;
}
/// Sub-tiles of what a block ends up with.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr int subtiles_of(const tile_config& c) {
  return share_columns(c) / subtile_columns(c);
}
/// Rows and columns of the TMA tiles in which TMA moves C. In shared memory rows of TMA tiles
/// lie `subtile_side` elements apart, also where they are shorter.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr int c_tma_tile_rows(const tile_config& c) {
  return c.swap_ab ? subtile_columns(c) : subtile_side;
}
[[nodiscard]] UNTAX_HOST_DEVICE constexpr int c_tma_tile_columns(const tile_config& c) {
  return c.swap_ab ? subtile_side : subtile_columns(c);
}
[[nodiscard]] UNTAX_HOST_DEVICE constexpr int subtile_bytes(const tile_config& c) {
  return c_tma_tile_rows(c) * subtile_side * 2;
}
/// Whether an MMA warpgroup adds the sums of several ranges of k up: it has registers for those of
/// the ranges before beside those of the one at hand. `shares`: of the kernel.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr bool adds_ranges(const tile_config& c,
                                                           const register_shares& shares) {
  constexpr int others = 56;
  return c.cluster_split_k == 1 && c.block_n + others <= shares.consumer;
}
/// Bytes of fp32 sums that a block leaves behind if another one finishes its tile.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr int partial_bytes(const tile_config& c) {
  return tile_rows(c) * c.block_n * 4;
}

}  // namespace untax::gpu

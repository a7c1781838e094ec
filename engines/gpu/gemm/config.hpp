#pragma once

#include <untax/core/host_device.hpp>

namespace untax::gpu {

/// The parameters of a kernel variant.
///
/// The tensor cores multiply an M operand, of which each MMA warpgroup has 64 rows, by the
/// transpose of an N operand. In C = A * B^T, M is A if A has many rows. If it has few, A and B
/// change places (`swap_ab`): M is B, the weights, so no row of a tile is wasted, and C is written
/// transposed.
struct tile_config {
  int block_n = 256;         ///< rows of the N operand in a tile: 16 to 256
  int cluster = 2;           ///< blocks along M per cluster, which share the N operand by multicast
  int stages = 4;            ///< stages of the ring, each being loaded or multiplied
  bool swap_ab = false;      ///< A and B change places: M is B, N is A
  int epilogue_buffers = 2;  ///< sub-tiles of results being stored, per MMA warpgroup
  /// Tiles have 64 rows of the M operand, and a stage has two k-blocks: each MMA warpgroup
  /// multiplies one. There are twice as many tiles, so fewer of them have to be split.
  bool warpgroup_split_k = false;
  /// Blocks of a cluster that share a tile: each multiplies a part of its k-blocks, and they add
  /// their sums through shared memory. Such a cluster has one tile.
  int cluster_split_k = 1;

  friend bool operator==(const tile_config&, const tile_config&) = default;
};

inline constexpr int block_k = 64;  // elements of a row in a k-block: 128 bytes, one swizzle
inline constexpr int mma_warpgroups = 2;
inline constexpr int warpgroup_threads = 128;
inline constexpr int warpgroup_rows = 64;  // rows of the M operand that an MMA warpgroup multiplies
inline constexpr int subtile_side = 64;    // results are stored in squares of 64 x 64, or smaller

/// One warpgroup loads and stores, and two multiply.
inline constexpr int block_threads = (1 + mma_warpgroups) * warpgroup_threads;

/// Registers per thread of the warpgroup that loads and stores, and of the MMA warpgroups.
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
/// MMA warpgroups with final sums, each of 64 rows of the M operand.
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

/// Stages of weights that are loaded before packets of A are sent. Both use the same memory, and
/// the packets are few. Measured on two H200.
inline constexpr int loaded_before_moving = 3;

/// Whether weights may be loaded before the previous kernels have ended. Measured on two H200: up
/// to 16 rows that saves 2 to 4 %; from 32 rows on it delays A.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr bool reads_early(const tile_config& c) {
  return c.swap_ab && c.block_n == 16;
}

/// The number of stages, after those loaded early, whose weights are then prefetched into L2.
/// Measured on an H200: 64 KB gain 1 to 3 % of a layer of decode with one token; with more, large
/// layers lose as much.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr int prefetched_stages(const tile_config& c) {
  constexpr int bytes = 64 << 10;
  return reads_early(c) ? bytes / (tile_rows(c) * k_blocks_per_stage(c) * block_k * 2) : 0;
}

/// Whether a thread has gate and up of an element, and registers for their product: with the
/// weights as M operand, they are rows r and r + 8 of a warp's 16 rows.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr bool has_gates(const tile_config& c) {
  return c.swap_ab && c.block_n <= 128;
}

/// Whether L2 keeps weights that are read for several tiles of A. Weights of narrower tiles are
/// always loaded as if they were read once: blocks that run at the same time still find them in L2.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr bool keeps_weights(const tile_config& c) {
  return c.swap_ab && !c.warpgroup_split_k && c.block_n > 128;
}

/// Columns of a tile that a block stores if several blocks share the tile: an equal part, but at
/// least 16, which are stored together. Then only the first blocks may have a part.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr int share_columns(const tile_config& c) {
  constexpr int least = 16;
  const int part = c.block_n / c.cluster_split_k;
  return part < least ? least : part;
}
/// Blocks that store a share of the columns: see `share_columns`.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr int shares_of(const tile_config& c) {
  return c.block_n / share_columns(c);
}
/// Columns of a sub-tile along N: all sub-tiles of a share are equally wide.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr int subtile_columns(const tile_config& c) {
  int columns = subtile_side;
  while (share_columns(c) % columns != 0) columns -= 8;
  return columns;
}
/// Sub-tiles of the columns that a block stores.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr int subtiles_of(const tile_config& c) {
  return share_columns(c) / subtile_columns(c);
}
/// Rows and columns of the TMA tiles in which C is stored. Their rows lie `subtile_side` elements
/// apart in shared memory, even if they are shorter.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr int c_tma_tile_rows(const tile_config& c) {
  return c.swap_ab ? subtile_columns(c) : subtile_side;
}
[[nodiscard]] UNTAX_HOST_DEVICE constexpr int c_tma_tile_columns(const tile_config& c) {
  return c.swap_ab ? subtile_side : subtile_columns(c);
}
[[nodiscard]] UNTAX_HOST_DEVICE constexpr int subtile_bytes(const tile_config& c) {
  return c_tma_tile_rows(c) * subtile_side * 2;
}
/// Whether an MMA warpgroup can add the sums of several ranges of k: it needs registers for the
/// sums of the previous ranges beside those of the current one. `shares`: of the kernel.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr bool adds_ranges(const tile_config& c,
                                                           const register_shares& shares) {
  constexpr int others = 56;
  return c.cluster_split_k == 1 && c.block_n + others <= shares.consumer;
}
/// Bytes of fp32 sums that a block stores if another block finishes its tile.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr int partial_bytes(const tile_config& c) {
  return tile_rows(c) * c.block_n * 4;
}

}  // namespace untax::gpu

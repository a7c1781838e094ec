#pragma once

#include <cstdint>

#include <untax/core/host_device.hpp>
#include <untax/order/raster.hpp>
#include <untax/tile/shard.hpp>

#include "engines/gpu/channel/peer_slabs.hpp"
#include "engines/gpu/gemm/config.hpp"
#include "engines/gpu/gemm/owned_rows.hpp"

namespace untax::gpu {

/// Whether a whole tile fits into the epilogue buffers. Partials can then be sent to a peer, and
/// peers' partials of own rows loaded, through these buffers. With swap_ab the latter took longer
/// than loads into registers, between two H100.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr bool can_stage(const tile_config& c) {
  return !c.swap_ab && c.cluster_split_k == 1 && !c.warpgroup_split_k &&
         c.epilogue_buffers >= subtiles_of(c);
}
/// Fragments per warp in a sub-tile.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr int subtile_parts(const tile_config& c) {
  return subtile_columns(c) / 8;
}

/// The unit in which partial results are sent: four sums of each lane of a warp, which are 16 rows
/// of the M operand by 8 of the N operand.
struct sum_fragment {
  int row_tile = 0;  ///< in A, in tiles of blocks
  int col_tile = 0;  ///< in the weights, likewise
  int group = 0;     ///< MMA warpgroup, among those with final sums
  int warp = 0;      ///< in the warpgroup
  int part = 0;      ///< index along the N operand

  friend bool operator==(const sum_fragment&, const sum_fragment&) = default;
};

/// Which rank adds which fragments of C, and where each rank's fragments lie in the adder's inbox.
/// Plain arithmetic, the same in kernels and on the host.
///
/// An owner adds the rows of C that it owns; with `everywhere`, every rank adds all of C. A rank
/// sends an owner the fragments that touch the owner's rows: into the sender's slab there, in the
/// order in which threads hold them.
struct sum_fragments : peer_slabs {
  int m = 0;
  int n = 0;
  bool everywhere = false;
  bool halves = false;  ///< partials are elements of 16 bits
  int row_tiles = 1;    ///< tiles of blocks, rounded up to whole clusters
  int col_tiles = 1;
  int tile_m = 128;  ///< rows of A in a block's tile
  int tile_n = 256;  ///< rows of the weights in a block's tile
  int groups = 2;    ///< MMA warpgroups with final sums
  int parts = 32;    ///< fragments of a tile along the N operand
  bool swap_ab = false;
  int owner_rows = 0;      ///< rows of an owner that is not one of the last: see `split`
  int raster_rows = 1;     ///< row tiles of an owner that are visited before the next columns
  int first_row_tile = 0;  ///< the row tile with which this rank begins
  /// Row tiles that fit into a slab, if the number of rows changes; 0: those of `m` rows.
  int slab_tiles = 0;

  static constexpr int warps = 4;  ///< per warpgroup
  static constexpr int lanes = 32;
  /// Whether a rank reserves slabs before it sends. It need not if every rank adds all of C: it
  /// receives from all peers in each epoch, and by then these have reset the words of the previous
  /// epoch.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr bool reserves() const noexcept { return !everywhere; }

  // Which rank adds what.

  /// Gives owners multiples of `step` rows, a power of two. The host calls this whenever `m` has
  /// changed: kernels divide as little as possible.
  constexpr void split(int step = 1) noexcept {
    owner_rows = everywhere ? m : ((m + ranks - 1) / ranks + step - 1) & -step;
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int full_rows() const noexcept { return owner_rows; }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int first_row(int owner) const noexcept {
    if (everywhere) return 0;
    const int row = owner * full_rows();
    return row < m ? row : m;
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int end_row(int owner) const noexcept {
    const int end = first_row(owner) + full_rows();
    return end < m ? end : m;
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int first_tile(int owner) const noexcept {
    return first_row(owner) / tile_m;
  }
  /// Row tiles that an owner's rows touch.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int tiles_of(int owner) const noexcept {
    if (first_row(owner) == end_row(owner)) return 0;
    return (end_row(owner) - 1) / tile_m - first_tile(owner) + 1;
  }
  /// The most row tiles that the rows of any owner touch.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int most_tiles() const noexcept {
    int most = 0;
    for (int owner = 0; owner < ranks; ++owner)
      if (tiles_of(owner) > most) most = tiles_of(owner);
    return most;
  }

  /// The most that an owner's rows touch in any run of up to `m` rows, wherever they begin.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int tiles_of_any_rows() const noexcept {
    if (everywhere) return most_tiles();
    return (full_rows() + tile_m - 2) / tile_m + 1;
  }
  /// Row tiles of a slab.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int tiles_of_slab() const noexcept {
    return slab_tiles > 0 ? slab_tiles : most_tiles();
  }

  // The place of a fragment in C.

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int row_of(const sum_fragment& f) const noexcept {
    return f.row_tile * tile_m + (swap_ab ? f.part * 8 : f.group * warpgroup_rows + f.warp * 16);
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int col_of(const sum_fragment& f) const noexcept {
    return f.col_tile * tile_n + (swap_ab ? f.group * warpgroup_rows + f.warp * 16 : f.part * 8);
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int fragment_rows() const noexcept {
    return swap_ab ? 8 : 16;
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int fragment_cols() const noexcept {
    return swap_ab ? 16 : 8;
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr bool wanted(int owner,
                                                        const sum_fragment& f) const noexcept {
    return wanted_of(first_row(owner), end_row(owner), f);
  }
  /// As `wanted`, for the owner of rows [first, end).
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr bool wanted_of(int first, int end,
                                                           const sum_fragment& f) const noexcept {
    return mask_of(first, end, f, 1) != 0;
  }
  /// A bit for each of `together` adjacent fragments, 32 at most, from `f` on, that the owner of
  /// rows [first, end) adds. Senders and adders use the same mask, since every word that is sent
  /// has to be reset by the rank that takes it.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr unsigned mask_of(int first, int end,
                                                             const sum_fragment& f,
                                                             int together) const noexcept {
    const int row = row_of(f);
    const int cols = n - col_of(f);
    int begin = 0;
    int count = parts - f.part < together ? parts - f.part : together;
    int there = 0;  // fragments up to the owner's last row, or the last column
    if (swap_ab) {
      if (first > row) begin = (first - row) >> 3;
      there = cols > 0 && first < end ? (end - row + 7) >> 3 : 0;
    } else if (meet(first, end, row, fragment_rows())) {
      there = (cols + 7) >> 3;
    }
    if (there < count) count = there;
    return begin < count
               ? (2U << static_cast<unsigned>(count - 1)) - (1U << static_cast<unsigned>(begin))
               : 0;
  }
  [[nodiscard]] UNTAX_HOST_DEVICE static constexpr bool meet(int first, int end, int row,
                                                             int rows) noexcept {
    return first < end && row < end && row + rows > first;
  }

  // The place of a fragment in slabs.

  /// Fragments of a tile.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int of_tile() const noexcept {
    return groups * warps * parts;
  }
  /// Fragments of a slab: all that one rank sends one owner in an epoch.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr std::int64_t of_slab() const noexcept {
    return std::int64_t{tiles_of_slab()} * col_tiles * of_tile();
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int fragment_bytes() const noexcept {
    return lanes * (halves ? 8 : 16);
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr std::int64_t slab_bytes() const noexcept {
    return of_slab() * fragment_bytes();
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr std::int64_t inbox_bytes() const noexcept {
    return sets().sets * ranks * slab_bytes();
  }
  /// The index of a fragment in the slabs of an owner.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr std::int64_t slot_of(
      int owner, const sum_fragment& f) const noexcept {
    const std::int64_t tile = std::int64_t{f.row_tile - first_tile(owner)} * col_tiles + f.col_tile;
    return ((tile * groups + f.group) * warps + f.warp) * parts + f.part;
  }
  // The order in which an owner adds.

  /// Fragments of an owner, including those that are not wanted.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int fragments_of(int owner) const noexcept {
    return tiles_of(owner) * col_tiles * of_tile();
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr sum_fragment fragment_of(int owner,
                                                                     int i) const noexcept {
    const int tile = i / of_tile();
    const order::cell at = order::banded{tiles_of(owner), col_tiles, raster_rows, 1}.at(tile);
    int rest = i - tile * of_tile();
    sum_fragment f;
    f.row_tile = first_tile(owner) + at.x;
    f.col_tile = at.y;
    f.part = rest % parts;
    rest /= parts;
    f.warp = rest % warps;
    f.group = rest / warps;
    return f;
  }

  // The order in which a rank multiplies: the rows of the next rank first, its own last.

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr row_rotation rotation() const noexcept {
    return {first_row_tile * tile_m, row_tiles * tile_m};
  }
  /// The first row of A of the tile at position `row` in the order of the GEMM.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int rotated(int row) const noexcept {
    return rotation().rotated(row);
  }
};

}  // namespace untax::gpu

#pragma once

#include <cstdint>

#include <untax/core/host_device.hpp>
#include <untax/tile/order.hpp>
#include <untax/tile/shard.hpp>

namespace untax {

/// A tile of the rank's own columns of C.
struct sent_tile {
  int flag = 0;  ///< the counter that says that it lies there
  int row = 0;
  int column = 0;  ///< among the rank's own
  int rows = 0;
  int columns = 0;
};

/// What a sender of `gemm_all_scatter_protocol::scatter` sends, as plain numbers: the protocol
/// computes in 64 bits, step by step, which takes a GPU as long as moving a tile does.
///
/// A tile goes out in TMA tiles as wide as it is, one below the other.
struct sent_tiles {
  /// A TMA tile has no more bytes, and no more rows.
  static constexpr int most_tma_tile_bytes = 32768;
  static constexpr int most_tma_tile_rows = 256;

  int rows = 0;     ///< of C
  int columns = 0;  ///< of C, the rank's own
  int tile_rows = 1;
  int tile_columns = 1;
  int down = 0;         ///< tiles, one below the other
  int across = 0;       ///< side by side
  int raster_rows = 1;  ///< tiles, one below the other, that go out column by column
  int flags = 0;        ///< counter of tile 0
  int tma_tile_rows = 1;

  template <class Protocol>
  [[nodiscard]] static constexpr sent_tiles of(const Protocol& how) noexcept {
    const tile_grid grid = how.tiles();
    sent_tiles sent;
    sent.rows = static_cast<int>(grid.rows.whole.size);
    sent.columns = static_cast<int>(grid.cols.whole.size);
    sent.tile_rows = static_cast<int>(grid.rows.step);
    sent.tile_columns = static_cast<int>(grid.cols.step);
    sent.down = grid.rows.count();
    sent.across = grid.cols.count();
    sent.raster_rows = how.raster_rows();
    sent.flags = how.tile_flag(0, 1).ready;
    // TMA tiles end where their tile does: what lies below may not be there yet.
    sent.tma_tile_rows = least(sent.tile_rows, most_tma_tile_rows);
    while (sent.tma_tile_rows * sent.tile_columns * 2 > most_tma_tile_bytes ||
           sent.tile_rows % sent.tma_tile_rows != 0)
      --sent.tma_tile_rows;
    return sent;
  }

  /// How many tiles fall to a sender.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int turns(strided share) const noexcept {
    return share.share_of(down * across);
  }
  /// The one that it sends when it has sent so many others.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr sent_tile at(strided share, int turn) const noexcept {
    const auto at = raster_grid{down, across, raster_rows}.at(share.at(turn));
    sent_tile tile;
    tile.flag = flags + at.column * down + at.row;
    tile.row = at.row * tile_rows;
    tile.column = at.column * tile_columns;
    tile.rows = least(tile_rows, rows - tile.row);
    tile.columns = least(tile_columns, columns - tile.column);
    return tile;
  }
  /// Of a whole TMA tile, also where one ends with the matrix.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr std::uint32_t tma_tile_bytes() const noexcept {
    return static_cast<std::uint32_t>(tma_tile_rows * tile_columns * 2);
  }

 private:
  [[nodiscard]] UNTAX_HOST_DEVICE static constexpr int least(int a, int b) noexcept {
    return a < b ? a : b;
  }
};

}  // namespace untax

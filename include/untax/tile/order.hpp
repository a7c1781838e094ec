#pragma once

#include <cstdint>

#include <untax/core/host_device.hpp>
#include <untax/tile/shard.hpp>

namespace untax {

/// The rank that `rank` sends to at hop h = 1..world-1: rank + h, so that at every hop each link
/// carries one stream.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr int receiver_at_hop(int rank, int hop,
                                                              int world) noexcept {
  return (rank + hop) % world;
}

/// The rank whose data reaches `rank` at hop h, if all ranks send in the order of
/// `receiver_at_hop`. Hop 0 is the rank itself.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr int source_at_hop(int rank, int hop, int world) noexcept {
  return (rank - hop + world) % world;
}

/// The share of worker `worker` if `count` items are assigned in turn: worker, worker + workers,
/// ...
struct strided {
  int worker = 0;
  int workers = 1;

  UNTAX_CALLS_ANY_SIDE
  template <class Visit>
  UNTAX_HOST_DEVICE constexpr void each(int count, Visit&& visit) const {
    for (int i = worker; i < count; i += workers) visit(i);
  }
  /// The i-th item of this worker.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int at(int i) const noexcept {
    return worker + i * workers;
  }
  /// The number of items of this worker, of `count` in all.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int share_of(int count) const noexcept {
    return worker < count ? (count - worker - 1) / workers + 1 : 0;
  }
};

/// A grid of `down` rows and `across` columns, visited in raster groups: the first column of
/// `raster_rows` rows, their next columns, and then the rows below them. With `k_interleave` the
/// columns of a raster group are divided into that many equal parts, which take turns.
struct raster_grid {
  int down = 1;
  int across = 1;
  int raster_rows = 1;   ///< from 1 to `down`
  int k_interleave = 1;  ///< divides `across`

  struct cell {
    int row;
    int column;
  };
  /// The cell that is visited as number `turn`, from 0.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr cell at(int turn) const noexcept {
    const int first = turn / (raster_rows * across) * raster_rows;
    const int height = down - first < raster_rows ? down - first : raster_rows;
    const int in_raster_rows = turn - first * across;
    const int column = in_raster_rows / height;
    const int row = first + in_raster_rows - column * height;
    if (k_interleave == 1) return {row, column};
    const int in_part = column / k_interleave;
    return {row, (column - in_part * k_interleave) * (across / k_interleave) + in_part};
  }
};

/// The tiles of a matrix: chunks of rows times chunks of columns. Tiles are numbered column by
/// column, so that neighbours in the order share their weights, which are the larger operand and
/// stay in cache.
struct tile_grid {
  pieces rows;
  pieces cols;

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int count() const noexcept {
    return rows.count() * cols.count();
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr range rows_of(int tile) const noexcept {
    return rows.at(tile % rows.count());
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr range cols_of(int tile) const noexcept {
    return cols.at(tile / rows.count());
  }
};

}  // namespace untax

#pragma once

#include <cstdint>

#include <untax/core/host_device.hpp>

namespace untax::sm90 {

/// Slices [begin, end) of one tile, by one cluster. (The tile of a cluster is as tall as its blocks
/// together.)
struct tile_work {
  int tile = -1;
  int begin = 0;
  int end = 0;

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr bool valid() const { return tile >= 0; }
};

/// Which cluster multiplies what: plain arithmetic, the same for every role and on the host.
///
/// The first `streamed` tiles are cut into equal shares, one for each cluster, wherever that cuts a
/// tile: then all clusters end at once although their number does not divide that of the tiles. The
/// tiles that follow are whole, and dealt in turn.
///
/// A cluster takes its share from the end. So what it begins with is the head of a tile, whose sums
/// it leaves behind, and what it ends with is the tail of one, which it finishes with the sums of
/// the clusters before it. They have been there for long, unless shares are smaller than tiles; and
/// as blocks start in the order of their numbers, nobody ever waits for a block that has no place.
struct tile_schedule {
  int x_tiles = 0;  ///< tiles of clusters along x
  int y_tiles = 0;
  int slices = 0;    ///< of each tile
  int clusters = 0;  ///< that run
  int streamed = 0;  ///< tiles that are cut into shares
  int band = 8;      ///< tiles along x that are gone through before the next ones along y

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int tiles() const { return x_tiles * y_tiles; }

  /// Where the share of a cluster begins, counted in slices over all tiles.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr std::int64_t share_begin(int cluster) const {
    return static_cast<std::int64_t>(streamed) * slices * cluster / clusters;
  }

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr tile_work first(int cluster) const {
    const std::int64_t begin = share_begin(cluster);
    const std::int64_t end = share_begin(cluster + 1);
    return begin < end ? cut(begin, end) : whole(streamed + cluster);
  }

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr tile_work next(int cluster,
                                                           const tile_work& last) const {
    if (last.tile >= streamed) return whole(last.tile + clusters);
    const std::int64_t begin = share_begin(cluster);
    const std::int64_t end = static_cast<std::int64_t>(last.tile) * slices + last.begin;
    return begin < end ? cut(begin, end) : whole(streamed + cluster);
  }

  /// Whether the sums of this work are for another cluster to finish.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr bool leaves_sums(const tile_work& w) const {
    return w.end < slices;
  }

  /// The first of the clusters before this one that left sums of the tile; the last is the one just
  /// before. Equal to `cluster` if there are none.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int first_helper(int cluster,
                                                             const tile_work& w) const {
    const std::int64_t tile_begin = static_cast<std::int64_t>(w.tile) * slices;
    int helper = cluster;
    if (w.begin > 0) {
      while (share_begin(helper) > tile_begin) --helper;
    }
    return helper;
  }

  /// Tiles are gone through in bands, so that those that run at the same time share what they read.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int x_of(int tile) const {
    const int in_band = tile % (band * y_tiles);
    return first_of_band(tile) + in_band % width_of_band(tile);
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int y_of(int tile) const {
    return tile % (band * y_tiles) / width_of_band(tile);
  }

 private:
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int first_of_band(int tile) const {
    return tile / (band * y_tiles) * band;
  }
  /// The last band may be narrower.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int width_of_band(int tile) const {
    const int left = x_tiles - first_of_band(tile);
    return left < band ? left : band;
  }

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr tile_work whole(int tile) const {
    return tile < tiles() ? tile_work{tile, 0, slices} : tile_work{};
  }
  /// The last piece of [begin, end) that lies in one tile.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr tile_work cut(std::int64_t begin,
                                                          std::int64_t end) const {
    const auto tile = static_cast<int>((end - 1) / slices);
    const std::int64_t tile_begin = static_cast<std::int64_t>(tile) * slices;
    return {tile, begin > tile_begin ? static_cast<int>(begin - tile_begin) : 0,
            static_cast<int>(end - tile_begin)};
  }
};

}  // namespace untax::sm90

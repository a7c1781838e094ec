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
/// The first tiles are whole, and dealt in turn. The last `streamed` ones are cut into equal
/// shares, one for each cluster, wherever that cuts a tile: then all clusters end at once although
/// their number does not divide that of the tiles.
///
/// A cluster takes its share from the end. So what it begins with is the head of a tile, whose sums
/// it leaves behind, and what it ends with is the tail of one, which it finishes with the sums of
/// the clusters before it. They have been there for long, unless shares are smaller than tiles; and
/// as blocks start in the order of their numbers, nobody ever waits for a block that has no place.
struct tile_schedule {
  int x_tiles = 0;  ///< tiles of clusters along x
  int y_tiles = 0;
  int slices = 0;    ///< of each tile, a multiple of `together`
  int together = 1;  ///< slices that are never cut apart
  int clusters = 0;  ///< that run
  int streamed = 0;  ///< tiles that are cut into shares
  int band = 8;      ///< tiles along x that are gone through before the next ones along y
  int segments = 1;  ///< equal parts of the tiles along x, gone through one after the other

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int tiles() const { return x_tiles * y_tiles; }

  /// Tiles that are not cut.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int whole_tiles() const { return tiles() - streamed; }

  /// Where the share of a cluster begins, counted in slices over all tiles.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr std::int64_t share_begin(int cluster) const {
    return static_cast<std::int64_t>(whole_tiles()) * slices + static_cast<std::int64_t>(streamed) *
                                                                   (slices / together) * cluster /
                                                                   clusters * together;
  }

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr tile_work first(int cluster) const {
    return cluster < whole_tiles() ? whole(cluster) : share(cluster, share_begin(cluster + 1));
  }

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr tile_work next(int cluster,
                                                           const tile_work& last) const {
    if (last.tile >= whole_tiles())
      return share(cluster, static_cast<std::int64_t>(last.tile) * slices + last.begin);
    const int tile = last.tile + clusters;
    return tile < whole_tiles() ? whole(tile) : share(cluster, share_begin(cluster + 1));
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
    const int in_segment = tile % tiles_of_segment();
    return tile / tiles_of_segment() * width() + first_of_band(in_segment) +
           in_segment % (band * y_tiles) % width_of_band(in_segment);
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int y_of(int tile) const {
    const int in_segment = tile % tiles_of_segment();
    return in_segment % (band * y_tiles) / width_of_band(in_segment);
  }

 private:
  /// Tiles of a segment along x.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int width() const { return x_tiles / segments; }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int tiles_of_segment() const {
    return width() * y_tiles;
  }
  // In a segment:
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int first_of_band(int tile) const {
    return tile / (band * y_tiles) * band;
  }
  /// The last band may be narrower.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int width_of_band(int tile) const {
    const int left = width() - first_of_band(tile);
    return left < band ? left : band;
  }

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr tile_work whole(int tile) const {
    return {tile, 0, slices};
  }
  /// The last piece in one tile of what a cluster's share has before `end`; none if that is all.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr tile_work share(int cluster, std::int64_t end) const {
    const std::int64_t begin = share_begin(cluster);
    if (begin >= end) return {};
    const auto tile = static_cast<int>((end - 1) / slices);
    const std::int64_t tile_begin = static_cast<std::int64_t>(tile) * slices;
    return {tile, begin > tile_begin ? static_cast<int>(begin - tile_begin) : 0,
            static_cast<int>(end - tile_begin)};
  }
};

}  // namespace untax::sm90

#pragma once

#include <cstdint>

#include <untax/core/host_device.hpp>
#include <untax/order/raster.hpp>

namespace untax::sm90 {

/// Slices [begin, end) of one tile, by one cluster. (The tile of a cluster is as tall as its blocks
/// side by side.)
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
  /// Where the blocks of a cluster share a tile, its slices are gone through in parts of so many,
  /// of each of which every block has a piece: all begin with what is in the first. A multiple of
  /// `together`.
  int part_slices = 0;

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int tiles() const { return x_tiles * y_tiles; }

  /// Tiles that are not cut.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int whole_tiles() const { return tiles() - streamed; }

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr tile_work first(int cluster) const {
    return cluster < whole_tiles() ? whole(cluster)
                                   : share_before(cluster, share_begin(cluster + 1));
  }

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr tile_work next(int cluster,
                                                           const tile_work& last) const {
    if (last.tile >= whole_tiles())
      return share_before(cluster, first_unit(last.tile) + unit_of(last.begin));
    const int tile = last.tile + clusters;
    return tile < whole_tiles() ? whole(tile) : share_before(cluster, share_begin(cluster + 1));
  }

  /// Where the blocks of a cluster share its only tile: the first of what one of them has, and what
  /// it has next.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr tile_work first_of_piece(int cluster, int piece,
                                                                     int pieces) const {
    const auto begin_of = [&](int number) {
      return part_slices / together * number / pieces * together;
    };
    return {cluster, begin_of(piece), begin_of(piece + 1)};
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr tile_work next_of_piece(const tile_work& last) const {
    const int begin = last.begin + part_slices;
    const int end = last.end + part_slices;
    if (begin >= slices) return {};
    return {last.tile, begin, end < slices ? end : slices};
  }

  /// Whether the sums of this work are for another cluster to finish.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr bool leaves_sums(const tile_work& w) const {
    return w.end < slices;
  }

  /// The first of the clusters before this one that left sums of the tile; the last is the one just
  /// before. Equal to `cluster` if there are none.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int first_helper(int cluster,
                                                             const tile_work& w) const {
    int helper = cluster;
    if (w.begin > 0) {
      while (share_begin(helper) > first_unit(w.tile)) --helper;
    }
    return helper;
  }

  using cell = order::cell;
  /// Where a tile lies: in bands, so that those that run at the same time share what they read.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr cell at(int tile) const {
    return order::in_bands(*this, tile);
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int x_of(int tile) const { return at(tile).x; }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int y_of(int tile) const { return at(tile).y; }

 private:
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr tile_work whole(int tile) const {
    return {tile, 0, slices};
  }

  // What is cut is counted in units of `together` slices, from the first tile that is. Plans see to
  // it that 32 bits are enough. Dividing numbers of 64 would take a GPU half a microsecond, before
  // it can begin anything.
  using unit_count = std::uint32_t;

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr unit_count unit_of(int slice) const {
    return static_cast<unit_count>(slice / together);
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr unit_count first_unit(int tile) const {
    return static_cast<unit_count>(tile - whole_tiles()) * unit_of(slices);
  }
  /// Where the share of a cluster begins: that part of all units, rounded down.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr unit_count share_begin(int cluster) const {
    const auto count = static_cast<unit_count>(clusters);
    const auto number = static_cast<unit_count>(cluster);
    const unit_count all = static_cast<unit_count>(streamed) * unit_of(slices);
    return all / count * number + all % count * number / count;
  }
  /// The last piece in one tile of what a cluster's share has before `end`; none if that is all.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr tile_work share_before(int cluster,
                                                                   unit_count end) const {
    const unit_count begin = share_begin(cluster);
    if (begin >= end) return {};
    const unit_count tile = (end - 1) / unit_of(slices);
    const unit_count tile_begin = tile * unit_of(slices);
    return {whole_tiles() + static_cast<int>(tile),
            begin > tile_begin ? static_cast<int>(begin - tile_begin) * together : 0,
            static_cast<int>(end - tile_begin) * together};
  }
};

}  // namespace untax::sm90

#pragma once

#include <cstdint>

#include <untax/core/host_device.hpp>
#include <untax/order/raster.hpp>

namespace untax::gpu {

/// K-blocks [begin, end) of one tile, multiplied by one cluster. (The tile of a cluster is as tall
/// as the tiles of its blocks together.)
struct work_tile {
  int tile = -1;
  int begin = 0;
  int end = 0;

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr bool valid() const { return tile >= 0; }
};

/// The k-blocks of a stage: the next ones, or, if a stage has one of each of two ranges, the next
/// k-block of each range.
struct stage_order {
  int begin = 0;  ///< the first k-block of both ranges
  int shift = 0;  ///< 1 if there are two ranges
  int step = 1;   ///< from one k-block of a stage to the other

  /// K-block number `place` of the stage with which a tile continues at `k_block`.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int at(int k_block, int place) const {
    return begin + ((k_block - begin) >> shift) + place * step;
  }
};

/// Which cluster multiplies what: plain arithmetic, the same for every role and on the host.
///
/// The first tiles are whole, and assigned in turn. The last `stream_k_tiles` tiles are cut into
/// equal shares, one per cluster, after any stage. So all clusters end at the same time although
/// their number does not divide the number of tiles.
///
/// A cluster begins with the end of its share. So its first part is the head of a tile, whose sums
/// it stores, and its last part is the tail of a tile, which it finishes with the sums of the
/// clusters before it. These were stored long before, unless shares are smaller than tiles. Blocks
/// start in the order of their numbers, so no block waits for one that is not resident.
struct tile_schedule {
  int m_tiles = 0;  ///< tiles of clusters along M
  int n_tiles = 0;
  int k_blocks = 0;            ///< of each tile, a multiple of `k_blocks_per_stage`
  int k_blocks_per_stage = 1;  ///< k-blocks that are never separated
  int clusters = 0;            ///< clusters that run
  int stream_k_tiles = 0;      ///< tiles that are cut into shares
  int raster_group = 8;        ///< tiles along M that are visited before the next ones along N
  int segments = 1;            ///< equal parts of the tiles along M, visited one after the other
  /// If the blocks of a cluster share a tile, they process its k-blocks in parts of this many. Each
  /// block has a split of each part, so all begin with what is in the first part. A multiple of
  /// `k_blocks_per_stage`.
  int part_k_blocks = 0;
  /// K-blocks of a range; 0: there are no ranges. The products of a range are summed by themselves,
  /// and the sums of ranges in order, so any tiles and any number of them give the same bits. Tiles
  /// are whole, or a cluster has one tile, and each of its warpgroups that split k has one range. A
  /// stage of two k-blocks has one of each of two ranges.
  int range_k_blocks = 0;

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int tiles() const { return m_tiles * n_tiles; }

  /// Tiles that are not cut.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int whole_tiles() const {
    return tiles() - stream_k_tiles;
  }

  /// If the blocks of a cluster share its only tile: the first work of one of these blocks, and its
  /// next work.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr work_tile first_of_split(int cluster, int split,
                                                                     int splits) const {
    const auto begin_of = [&](int number) {
      if (range_k_blocks == 0)
        return stages_of(part_k_blocks) * number / splits * k_blocks_per_stage;
      const int begin = number * range_k_blocks * k_blocks_per_stage;
      return begin < k_blocks ? begin : k_blocks;
    };
    return {cluster, begin_of(split), begin_of(split + 1)};
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr work_tile next_of_split(const work_tile& last) const {
    const int begin = last.begin + part_k_blocks;
    const int end = last.end + part_k_blocks;
    if (begin >= k_blocks) return {};
    return {last.tile, begin, end < k_blocks ? end : k_blocks};
  }

  /// The k-block at which the sums that begin at k-block `begin` are complete: `end`, or, if there
  /// are ranges, the end of as many ranges as a stage has k-blocks.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int sums_end(int begin, int end) const {
    const int here = range_k_blocks * k_blocks_per_stage;
    return here > 0 && here < end - begin ? begin + here : end;
  }
  /// The stages of the sums that begin at a k-block.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr stage_order stages_from(int begin) const {
    if (range_k_blocks == 0 || k_blocks_per_stage == 1) return {};
    return {begin, 1, range_k_blocks};
  }

  /// The number of splits per tile if all tiles are split alike, else 0.
  [[nodiscard]] constexpr int even_splits() const {
    return stream_k_tiles == tiles() && clusters % tiles() == 0 ? clusters / tiles() : 0;
  }

  /// Whether another cluster finishes this work, so that its sums are stored as partial sums.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr bool stores_partial(const work_tile& w) const {
    return w.end < k_blocks;
  }

  /// Raster groups make tiles that run at the same time share what they read.
  [[nodiscard]] constexpr order::banded raster() const {
    return {m_tiles, n_tiles, raster_group, segments};
  }
  /// Stages of so many k-blocks: a stage has one or two.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int stages_of(int count) const {
    return count >> (k_blocks_per_stage - 1);
  }
  [[nodiscard]] constexpr int stages() const { return stages_of(k_blocks); }
};

/// Tells the next work of a cluster, and where a tile lies. All divisions, which are slow on a GPU,
/// are done by the constructor.
class tile_scheduler : public tile_schedule {
 public:
  /// The position of a tile, in tiles.
  struct coord {
    int m, n;
  };

  tile_scheduler() = default;
  explicit tile_scheduler(const tile_schedule& s)
      : tile_schedule(s),
        cells_(s.raster()),
        stages_(static_cast<stage_count>(s.stages())),
        by_clusters_(s.clusters),
        by_stages_(static_cast<int>(stages_)) {
    const auto all = static_cast<int>(static_cast<stage_count>(s.stream_k_tiles) * stages_);
    each_ = static_cast<stage_count>(by_clusters_.quotient(all));
    left_ = static_cast<stage_count>(all) - each_ * static_cast<stage_count>(s.clusters);
  }

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr coord at(int tile) const {
    const order::cell where = cells_.at(tile);
    return {where.x, where.y};
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr work_tile first(int cluster) const {
    return cluster < whole_tiles() ? whole(cluster) : share_of(cluster);
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr work_tile next(int cluster,
                                                           const work_tile& last) const {
    if (last.tile >= whole_tiles())
      return share_before(cluster,
                          first_stage(last.tile) + static_cast<stage_count>(stages_of(last.begin)));
    const int tile = last.tile + clusters;
    return tile < whole_tiles() ? whole(tile) : share_of(cluster);
  }
  /// The first of the clusters before this one that stored sums of the tile; the last one is
  /// `cluster - 1`. Equal to `cluster` if there are none.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int first_contributor(int cluster,
                                                                  const work_tile& w) const {
    int contributor = cluster;
    while (share_begin(contributor) > first_stage(w.tile)) --contributor;
    return contributor;
  }
  /// The most k-blocks that any cluster multiplies.
  [[nodiscard]] constexpr int most_k_blocks() const {
    int most = 1;
    for (int cluster = 0; cluster < clusters; ++cluster) {
      int here = 0;
      for (work_tile w = first(cluster); w.valid(); w = next(cluster, w)) here += w.end - w.begin;
      if (here > most) most = here;
    }
    return most;
  }

 private:
  // Shares are counted in stages, from the first tile that is cut. Plans ensure that 32 bits are
  // enough.
  using stage_count = std::uint32_t;

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr work_tile whole(int tile) const {
    return {tile, 0, k_blocks};
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr stage_count first_stage(int tile) const {
    return static_cast<stage_count>(tile - whole_tiles()) * stages_;
  }
  /// The first stage of a cluster's share: `cluster / clusters` of all stages, rounded down.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr stage_count share_begin(int cluster) const {
    const auto number = static_cast<stage_count>(cluster);
    return each_ * number +
           static_cast<stage_count>(by_clusters_.quotient(static_cast<int>(left_ * number)));
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr work_tile share_of(int cluster) const {
    return share_before(cluster, share_begin(cluster + 1));
  }
  /// The last part, in one tile, of a cluster's share before stage `end`; invalid if there is none.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr work_tile share_before(int cluster,
                                                                   stage_count end) const {
    const stage_count begin = share_begin(cluster);
    if (begin >= end) return {};
    const int tile = whole_tiles() + by_stages_.quotient(static_cast<int>(end - 1));
    const stage_count tile_begin = first_stage(tile);
    return {tile,
            begin > tile_begin ? static_cast<int>(begin - tile_begin) * k_blocks_per_stage : 0,
            static_cast<int>(end - tile_begin) * k_blocks_per_stage};
  }

  order::cell_finder cells_;
  stage_count stages_ = 1;  // of a tile
  stage_count each_ = 0;    // per cluster, rounded down
  stage_count left_ = 0;    // the rest of that division
  order::divider by_clusters_;
  order::divider by_stages_;
};

}  // namespace untax::gpu

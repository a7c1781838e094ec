#pragma once

#include <cstddef>
#include <cstdint>

#include "engines/sm90/gemm/arguments.hpp"
#include "engines/sm90/gemm/arrived_slices.cuh"
#include "engines/sm90/gemm/config.hpp"
#include "engines/sm90/gemm/pieces.cuh"
#include "engines/sm90/gemm/protocol.cuh"
#include "engines/sm90/ptx/barrier.cuh"
#include "engines/sm90/ptx/cluster.cuh"

namespace untax::sm90 {

/// Shared memory of a block. The swizzle of the copy engine counts from multiples of 1024 bytes.
template <tile_config config>
struct block_memory {
  struct alignas(1024) stage {
    std::byte x[stage_slices(config)][tile_rows(config) * slice_depth * 2];
    std::byte y[stage_slices(config)][config.columns * slice_depth * 2];
  };
  struct alignas(1024) chunk {
    std::byte rows[chunk_bytes(config)];
  };

  stage stages[config.stages];
  chunk staging[storing_groups(config)][config.staging];
  float4 halves[config.deep ? config.columns / 8 * group_threads : 1];  // sums of math 1
  piece_inbox<config> pieces;          // sums of the other blocks that share a tile
  stage_barrier full[config.stages];   // loader -> math
  stage_barrier empty[config.stages];  // math of all blocks that share y -> loader
  stage_barrier staged[storing_groups(config)][config.staging];  // math -> storer
  stage_barrier given[storing_groups(config)][config.staging];   // storer -> math
  stage_barrier moved[storing_groups(config)];                   // of what storers move before
  arrived_slices arrived;                                        // scout -> loader
};

/// Bytes to ask for, so that the memory can be moved to a multiple of 1024.
template <tile_config config>
inline constexpr std::size_t shared_bytes = sizeof(block_memory<config>) + 1024;

/// What all roles of a block know.
template <tile_config config>
struct block_view {
  block_memory<config>& shared;
  const gemm_arguments& arguments;
  int cluster;                 // the number of the cluster, of those that multiply
  std::uint32_t x_place;       // the number of the block along x, in the cluster
  std::uint32_t piece;         // which part of the slices it has
  tile_work first_of_cluster;  // of what the cluster has to do, where it was found before

  /// What this block reads slices of, in the order in which all roles do it.
  [[nodiscard]] __device__ tile_work first() const {
    if constexpr (config.pieces > 1)
      return arguments.schedule.first_of_piece(cluster, static_cast<int>(piece), config.pieces);
    return first_of_cluster.valid() ? first_of_cluster : arguments.schedule.first(cluster);
  }
  [[nodiscard]] __device__ tile_work next(const tile_work& last) const {
    if constexpr (config.pieces > 1) return arguments.schedule.next_of_piece(last);
    return arguments.schedule.next(cluster, last);
  }
  /// Calls `visit(work)` for all of that.
  template <class Visit>
  __device__ void each_work(const Visit& visit) const {
    for (tile_work w = first(); w.valid(); w = next(w)) visit(w);
  }
  /// The same, once for each tile: as if slices of one that the blocks of a cluster share followed
  /// each other. Of several parts only their number is right then, not which they are.
  template <class Visit>
  __device__ void each_tile(const Visit& visit) const {
    if constexpr (config.pieces == 1) return each_work(visit);
    tile_work all = first();
    all.end = all.begin;
    each_work([&](const tile_work& w) { all.end += w.end - w.begin; });
    visit(all);
  }

  /// The first row of x, and of y, of this block's part of a tile of the cluster.
  [[nodiscard]] __device__ int x_begin(const tile_schedule::cell& tile) const {
    return (tile.x * config.cluster + static_cast<int>(x_place)) * tile_rows(config);
  }
  [[nodiscard]] __device__ int y_begin(const tile_schedule::cell& tile) const {
    return tile.y * config.columns;
  }
  [[nodiscard]] __device__ int x_begin(const tile_work& w) const {
    return x_begin(arguments.schedule.at(w.tile));
  }
  [[nodiscard]] __device__ int y_begin(const tile_work& w) const {
    return y_begin(arguments.schedule.at(w.tile));
  }
  /// The first row of A that this block reads for a tile, for itself or for all of the cluster, and
  /// how many follow.
  [[nodiscard]] __device__ int a_begin(const tile_work& w) const {
    return config.swapped ? y_begin(w) + y_share() : x_begin(w);
  }
  [[nodiscard]] __device__ int a_rows() const {
    return config.swapped ? arguments.y_rows : tile_rows(config);
  }
  /// The first row of B that this block reads for a tile, for itself or for all of the cluster.
  [[nodiscard]] __device__ int b_begin(const tile_work& w) const {
    return config.swapped ? x_begin(w) : y_begin(w) + y_share();
  }
  /// How far from the beginning of y this block's share of it lies.
  [[nodiscard]] __device__ int y_share() const {
    return static_cast<int>(x_place) * arguments.y_rows;
  }
  [[nodiscard]] __device__ tile_place place(const tile_work& w) const {
    return config.swapped ? tile_place{y_begin(w), x_begin(w)} : tile_place{x_begin(w), y_begin(w)};
  }
  /// The number in the cluster of the block with another piece of this one's tile.
  [[nodiscard]] __device__ std::uint32_t block_of_piece(std::uint32_t other) const {
    return other * config.cluster + x_place;
  }
};

}  // namespace untax::sm90

#pragma once

#include <cstddef>
#include <cstdint>

#include "engines/gpu/gemm/cluster_split_k.cuh"
#include "engines/gpu/gemm/config.hpp"
#include "engines/gpu/gemm/io.cuh"
#include "engines/gpu/gemm/io.hpp"
#include "engines/gpu/gemm/ready_k_blocks.cuh"
#include "engines/gpu/sm90/ptx/barrier.cuh"
#include "engines/gpu/sm90/ptx/cluster.cuh"

namespace untax::gpu {

/// Shared memory of a block. The swizzle of TMA repeats at multiples of 1024 bytes.
template <tile_config config>
struct block_memory {
  struct alignas(1024) stage {
    std::byte m_operand[k_blocks_per_stage(config)][tile_rows(config) * block_k * 2];
    std::byte n_operand[k_blocks_per_stage(config)][config.block_n * block_k * 2];
  };
  struct alignas(1024) subtile {
    std::byte rows[subtile_bytes(config)];
  };

  stage stages[config.stages];
  subtile epilogue_buffers[storing_warpgroups(config)][config.epilogue_buffers];
  float4 halves[config.warpgroup_split_k && config.cluster_split_k == 1
                    ? config.block_n / 8 * warpgroup_threads
                    : 1];             // sums of consumer 1
  dsmem_reduce<config> splits;        // sums of other warpgroups, where blocks share a tile
  stage_barrier full[config.stages];  // producer -> consumers
  stage_barrier
      empty[config.stages];  // consumers of all blocks that share the N operand -> producer
  stage_barrier epi_full[storing_warpgroups(config)]
                        [config.epilogue_buffers];  // consumer -> epilogue warp
  stage_barrier epi_empty[storing_warpgroups(config)]
                         [config.epilogue_buffers];  // epilogue warp -> consumer
  stage_barrier moved[storing_warpgroups(config)];   // copies by epilogue warps before their tiles
  ready_k_blocks arrived;                            // flag poller -> producer
  peer_meeting meeting;                              // epilogue warps -> warp 3 -> consumers
};

/// Bytes to allocate, so that the memory can be aligned to 1024 bytes.
template <tile_config config>
inline constexpr std::size_t shared_bytes = sizeof(block_memory<config>) + 1024;

/// The block, as seen by all its roles.
template <tile_config config>
struct block_view : launch_trace {
  block_memory<config>& shared;
  const gemm_arguments& arguments;
  int cluster;                 // the number of the cluster among those that multiply
  std::uint32_t m_place;       // the index of the block along M in the cluster
  std::uint32_t split;         // the index of the block's part of the k-blocks
  work_tile first_of_cluster;  // the cluster's first work, if it has been located already

  /// The first work of this block: k-blocks that it loads, in the same order for all roles.
  [[nodiscard]] __device__ work_tile first() const {
    if constexpr (config.cluster_split_k > 1)
      return arguments.schedule.first_of_split(cluster, static_cast<int>(split),
                                               config.cluster_split_k);
    return first_of_cluster.valid() ? first_of_cluster : arguments.schedule.first(cluster);
  }
  [[nodiscard]] __device__ work_tile next(const work_tile& last) const {
    if constexpr (config.cluster_split_k > 1) return arguments.schedule.next_of_split(last);
    return arguments.schedule.next(cluster, last);
  }
  /// K-blocks of the work after `w`; 0 if there is none.
  [[nodiscard]] __device__ int k_blocks_after(const work_tile& w) const {
    const work_tile after = next(w);
    return after.valid() ? after.end - after.begin : 0;
  }
  /// Calls `visit(work)` for all work of this block.
  template <class Visit>
  __device__ void each_work(const Visit& visit) const {
    for (work_tile w = first(); w.valid(); w = next(w)) visit(w);
  }
  /// Calls `visit(work)` once per tile. If the blocks of a cluster share a tile, the k-blocks of
  /// this block count as consecutive: then only their number is right, not their positions.
  template <class Visit>
  __device__ void each_tile(const Visit& visit) const {
    if constexpr (config.cluster_split_k == 1) return each_work(visit);
    work_tile all = first();
    all.end = all.begin;
    each_work([&](const work_tile& w) { all.end += w.end - w.begin; });
    visit(all);
  }

  /// The first row of the M operand, or of the N operand, of this block's part of a cluster's tile.
  [[nodiscard]] __device__ int m_begin(const tile_scheduler::coord& tile) const {
    return (tile.m * config.cluster + static_cast<int>(m_place)) * tile_rows(config);
  }
  [[nodiscard]] __device__ int n_begin(const tile_scheduler::coord& tile) const {
    return tile.n * config.block_n;
  }
  [[nodiscard]] __device__ int m_begin(const work_tile& w) const {
    return m_begin(arguments.schedule.at(w.tile));
  }
  [[nodiscard]] __device__ int n_begin(const work_tile& w) const {
    return n_begin(arguments.schedule.at(w.tile));
  }
  /// The first row of A that this block loads for a tile, for itself or for its whole cluster, and
  /// how many rows it loads.
  [[nodiscard]] __device__ int a_begin(const work_tile& w) const {
    return config.swap_ab ? n_begin(w) + multicast_offset() : m_begin(w);
  }
  [[nodiscard]] __device__ int a_rows() const {
    return config.swap_ab ? arguments.multicast_rows : tile_rows(config);
  }
  /// The first row of B that this block loads for a tile, for itself or for its whole cluster.
  [[nodiscard]] __device__ int b_begin(const work_tile& w) const {
    return config.swap_ab ? m_begin(w) : n_begin(w) + multicast_offset();
  }
  /// Rows from the first one of the N operand to this block's multicast share of it.
  [[nodiscard]] __device__ int multicast_offset() const {
    return static_cast<int>(m_place) * arguments.multicast_rows;
  }
  [[nodiscard]] __device__ tile_place place(const work_tile& w) const {
    return config.swap_ab ? tile_place{n_begin(w), m_begin(w)} : tile_place{m_begin(w), n_begin(w)};
  }
  /// The number in the cluster of the block that multiplies another split of this block's tile.
  [[nodiscard]] __device__ std::uint32_t block_of_split(std::uint32_t other) const {
    return other * config.cluster + m_place;
  }
};

}  // namespace untax::gpu

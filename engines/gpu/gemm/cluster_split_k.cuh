#pragma once

#include <cstdint>

#include "engines/gpu/gemm/config.hpp"
#include "engines/gpu/sm90/ptx/barrier.cuh"
#include "engines/gpu/sm90/ptx/cluster_store.cuh"

namespace untax::gpu {

/// Sums go from thread to thread in fours, whichever way they take.
__device__ inline void add_four(float* sums, const float4& more) {
  sums[0] += more.x;
  sums[1] += more.y;
  sums[2] += more.z;
  sums[3] += more.w;
}

/// Where a block of a cluster that shares a tile finds what the others multiplied: their sums of
/// its share of the columns, in the order in which threads hold them. Each is written once in a
/// launch, by stores of its owner, which the barrier counts; so nobody waits for more than these.
/// They are added to the block's own in the order of the others, so results are reproducible.
template <tile_config config>
struct dsmem_reduce {
  static_assert(config.block_n % share_columns(config) == 0 && share_columns(config) % 8 == 0);
  static constexpr int others = config.cluster_split_k - 1;
  static constexpr int fours = share_columns(config) / 8;  // of a thread

  float4 sums[others][storing_warpgroups(config)][fours][warpgroup_threads];
  stage_barrier come;

  /// By one thread, before any block of the cluster sends.
  __device__ void init() {
    come.init(1);
    come.arrive_and_expect(sizeof(sums));
  }

  /// A thread's sums of the share of another block: its number in the cluster, and the number of
  /// its split and of this block's.
  __device__ void send(const float* from, std::uint32_t block, int to_split, int split, int group,
                       int thread) {
    const std::uint32_t to =
        address_in_block(&sums[split < to_split ? split : split - 1][group][0][thread], block);
    const std::uint32_t barrier = address_in_block(&come.word, block);
#pragma unroll
    for (int i = 0; i < fours; ++i)
      store_to_block(to + i * warpgroup_threads * sizeof(float4),
                     make_float4(from[4 * i], from[4 * i + 1], from[4 * i + 2], from[4 * i + 3]),
                     barrier);
  }

  /// Adds what the others sent of this block's share to what the thread has of it.
  __device__ void add(float* to, int group, int thread) {
    come.wait_for_cluster(0);
#pragma unroll
    for (int other = 0; other < others; ++other) {
#pragma unroll
      for (int i = 0; i < fours; ++i) add_four(to + 4 * i, sums[other][group][i][thread]);
    }
  }
};

/// Of tiles that blocks do not share.
template <tile_config config>
requires(config.cluster_split_k == 1) struct dsmem_reduce<config> {
  __device__ void init() {}
};

}  // namespace untax::gpu

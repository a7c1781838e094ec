#pragma once

#include <cstdint>

#include "engines/gpu/gemm/config.hpp"
#include "engines/gpu/sm90/ptx/barrier.cuh"
#include "engines/gpu/sm90/ptx/cluster_store.cuh"

namespace untax::gpu {

/// Adds four sums: threads pass sums on in fours, through shared or global memory.
__device__ inline void add_four(float* sums, const float4& more) {
  sums[0] += more.x;
  sums[1] += more.y;
  sums[2] += more.z;
  sums[3] += more.w;
}

/// The inbox of a block in a cluster that shares a tile: the sums that other warpgroups have of its
/// share of the columns, in the order in which threads hold them. Each sum is stored once per
/// launch, with st.async, and the mbarrier counts the bytes, so a block waits for nothing else. The
/// parts of k are added in order, the block's own in its place. So an element has the same bits in
/// every column of a tile, and in every launch.
template <tile_config config>
struct dsmem_reduce {
  static_assert(config.block_n % share_columns(config) == 0 && share_columns(config) % 8 == 0);
  static constexpr int each = k_blocks_per_stage(config);  // parts of k in a block
  static constexpr int others = config.cluster_split_k * each - 1;
  static constexpr int fours = share_columns(config) / 8;  // of sums, per thread

  float4 sums[others][storing_warpgroups(config)][fours][warpgroup_threads];
  stage_barrier arrived;

  /// One thread must call this before any block of the cluster sends.
  __device__ void init() {
    arrived.init(1);
    arrived.arrive_and_expect(sizeof(sums));
  }

  /// Sends this thread's sums, of part `part` of k, to the block that stores them: number `block`
  /// in the cluster. That block adds part `own` itself.
  __device__ void send(const float* from, std::uint32_t block, int own, int part, int group,
                       int thread) {
    const std::uint32_t to =
        address_in_block(&sums[part < own ? part : part - 1][group][0][thread], block);
    const std::uint32_t barrier = address_in_block(&arrived.word, block);
#pragma unroll
    for (int i = 0; i < fours; ++i)
      store_to_block(to + i * warpgroup_threads * sizeof(float4),
                     make_float4(from[4 * i], from[4 * i + 1], from[4 * i + 2], from[4 * i + 3]),
                     barrier);
  }

  /// Waits for the other parts, and adds them and part `own`, which is in `to`, in order.
  __device__ void add(float* to, int own, int group, int thread) {
    arrived.wait_for_cluster(0);
#pragma unroll
    for (int i = 0; i < fours; ++i) {
      const float4 mine = make_float4(to[4 * i], to[4 * i + 1], to[4 * i + 2], to[4 * i + 3]);
      const auto sum_of = [&](int part) {
        return part == own ? mine : sums[part < own ? part : part - 1][group][i][thread];
      };
      const float4 first = sum_of(0);
      to[4 * i] = first.x;
      to[4 * i + 1] = first.y;
      to[4 * i + 2] = first.z;
      to[4 * i + 3] = first.w;
#pragma unroll
      for (int part = 1; part <= others; ++part) add_four(to + 4 * i, sum_of(part));
    }
  }
};

/// For tiles that blocks do not share.
template <tile_config config>
requires(config.cluster_split_k == 1) struct dsmem_reduce<config> {
  __device__ void init() {}
};

}  // namespace untax::gpu

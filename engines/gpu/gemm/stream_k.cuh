#pragma once

#include <cstdint>

#include <untax/flow/wait.hpp>
#include <untax/memory/cuda_memory.cuh>

#include "engines/gpu/channel/mutant.hpp"
#include "engines/gpu/gemm/block.cuh"
#include "engines/gpu/gemm/cluster_split_k.cuh"
#include "engines/gpu/gemm/ready_k_blocks.cuh"
#include "engines/gpu/sm90/ptx/floats.cuh"

namespace untax::gpu {

/// Marks a sum that has not arrived: one of the NaNs.
[[nodiscard]] __device__ inline float no_sum() { return __uint_as_float(no_sum_bits); }
/// Returns `f`, or another NaN if it is this NaN.
[[nodiscard]] __device__ inline float as_sum(float f) {
  return __uint_as_float(min(__float_as_uint(f), no_sum_bits - 1));
}
[[nodiscard]] __device__ inline bool is_sum(const float4& f) {
  return __float_as_uint(f.x) != no_sum_bits && __float_as_uint(f.y) != no_sum_bits &&
         __float_as_uint(f.z) != no_sum_bits && __float_as_uint(f.w) != no_sum_bits;
}

/// The partial sums of a thread from some clusters: `contributor_step` apart from cluster to
/// cluster, backwards, and `part_step` apart within a cluster.
template <int most_contributors, int parts>
struct sums_view {
  float4* from;
  int contributor_step;
  int part_step;
  int contributors;  // at least 1
  float4 seen[most_contributors][parts] = {};

  [[nodiscard]] __device__ float4* at(int contributor, int part) const {
    return from - contributor * contributor_step + part * part_step;
  }
};

/// A memory policy whose counters are such views: 1 when all sums have arrived. A sum is both data
/// and signal, so no other load has to be ordered after it.
template <int most_contributors, int parts>
struct sums_memory : cuda_memory {
  using counter = sums_view<most_contributors, parts>;

  __device__ static std::uint64_t load_acquire(counter& c) noexcept {
    bool all = true;
#pragma unroll
    for (int h = 0; h < most_contributors; ++h) {
      // Loading the last contributor again is faster than skipping the load.
      const int contributor = h < c.contributors ? h : c.contributors - 1;
#pragma unroll
      for (int i = 0; i < parts; ++i) c.seen[h][i] = load_shared_floats(c.at(contributor, i));
    }
#pragma unroll
    for (int h = 0; h < most_contributors; ++h) {
#pragma unroll
      for (int i = 0; i < parts; ++i) all = all && is_sum(c.seen[h][i]);
    }
    return all ? 1 : 0;
  }
  /// Nothing to signal: each sum is its own signal.
  __device__ static void raise_release(counter& /*c*/, std::uint64_t /*value*/) noexcept {}
};

/// Fix-up of tiles that several clusters share: partial sums pass through global memory, in the
/// order in which threads hold them, and are their own signal. They are added from the last cluster
/// to the first, so results are reproducible.
template <tile_config config>
class stream_k_fixup {
 public:
  static constexpr int count = config.block_n / 2;  // per thread

  __device__ stream_k_fixup(const block_view<config>& block, int group)
      : block_(block), group_(group), thread_(static_cast<int>(threadIdx.x) % warpgroup_threads) {}

  /// Stores the partial sums of this warpgroup for a later cluster.
  __device__ void leave(const float (&sums)[count]) const {
    float4* to = sums_of(block_.cluster);
#pragma unroll
    for (int i = 0; i < count / 4; ++i)
      store_shared_floats(to + i * warpgroup_threads,
                          make_float4(as_sum(sums[4 * i]), as_sum(sums[4 * i + 1]),
                                      as_sum(sums[4 * i + 2]), as_sum(sums[4 * i + 3])));
  }

  /// Adds the partial sums of the clusters from `first` to the one before this cluster.
  __device__ void add(float (&sums)[count], int first) const {
    for (int last = block_.cluster - 1; last >= first; last -= contributors_together) {
#pragma unroll
      for (int part = 0; part < count / 4; part += parts_at_once)
        add_some(sums, last, last - first + 1, part);
    }
    __syncwarp();
  }

 private:
  // A thread loads 128 bytes at once, or a little less.
  static constexpr int parts_at_once = []() {
    int parts = 8;
    while (count / 4 % parts != 0) --parts;
    return parts;
  }();
  static constexpr int contributors_together = 8 / parts_at_once;

  __device__ void add_some(float (&sums)[count], int last, int contributors, int part) const {
    using memory = sums_memory<contributors_together, parts_at_once>;
    typename memory::counter view{sums_of(last) + part * warpgroup_threads, cluster_step,
                                  warpgroup_threads, contributors};
    // The wait ends: all blocks are of one launch on one GPU, and started in numerical order.
    bounded_watch watch;
    (void)wait_until<memory>(view, wait_site{.expected = 1}, watch);
#pragma unroll
    for (int h = 0; h < contributors_together; ++h) {
      if (h >= contributors) break;
#pragma unroll
      for (int i = 0; i < parts_at_once; ++i) {
        add_four(sums + 4 * (part + i), view.seen[h][i]);
        // Reset for the next launch.
        if (!left_out(mutant::stream_k_reset))
          store_shared_floats(view.at(h, i), make_float4(no_sum(), no_sum(), no_sum(), no_sum()));
      }
    }
  }

  static constexpr int group_step = count / 4 * warpgroup_threads;
  static constexpr int cluster_step = config.cluster * storing_warpgroups(config) * group_step;

  [[nodiscard]] __device__ float4* sums_of(int cluster) const {
    const int group = static_cast<int>(block_.m_place) * storing_warpgroups(config) + group_;
    return reinterpret_cast<float4*>(block_.arguments.partials) + cluster * cluster_step +
           group * group_step + thread_;
  }

  const block_view<config>& block_;
  int group_;
  int thread_;
};

}  // namespace untax::gpu

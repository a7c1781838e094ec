#pragma once

#include <cstdint>

#include <untax/flow/wait.hpp>
#include <untax/memory/cuda_memory.cuh>

#include "engines/sm90/gemm/block.cuh"

namespace untax::sm90 {

/// Memory as seen from one GPU: a release or acquire for the whole system takes longer.
struct one_gpu_memory : cuda_memory {
  __device__ static std::uint64_t load_acquire(const counter& c) noexcept {
    return ref(c).load(cuda::memory_order_acquire);
  }
  __device__ static void store_release(counter& c, std::uint64_t value) noexcept {
    ref(c).store(value, cuda::memory_order_release);
  }
  __device__ static cuda::atomic_ref<std::uint64_t, cuda::thread_scope_device> ref(
      const counter& c) noexcept {
    return cuda::atomic_ref<std::uint64_t, cuda::thread_scope_device>(const_cast<counter&>(c));
  }
};

/// Sums of a tile that several clusters share travel through global memory, in the order in which
/// threads hold them. They are added in the order of the clusters, so results are reproducible.
template <tile_config config>
class shared_sums {
 public:
  static constexpr int count = config.columns / 2;  // sums of a thread

  __device__ shared_sums(const block_view<config>& block, int group)
      : block_(block), group_(group), thread_(static_cast<int>(threadIdx.x) % group_threads) {}

  /// Leaves the sums of this warpgroup behind for a later cluster.
  __device__ void leave(const float (&sums)[count]) const {
    float4* to = sums_of(block_.cluster);
#pragma unroll
    for (int i = 0; i < count / 4; ++i)
      to[i * group_threads] =
          make_float4(sums[4 * i], sums[4 * i + 1], sums[4 * i + 2], sums[4 * i + 3]);
    meet_warpgroup(1 + group_);
    if (thread_ == 0) one_gpu_memory::store_release(ready_of(block_.cluster), 1);
  }

  /// Adds what the clusters from `first` up to the one before this left behind.
  __device__ void add(float (&sums)[count], int first) const {
    await(first);
    for (int helper = block_.cluster - 1; helper >= first; --helper) {
      const float4* from = sums_of(helper);
#pragma unroll
      for (int i = 0; i < count / 4; ++i) {
        const float4 left = __ldcg(from + i * group_threads);
        sums[4 * i] += left.x;
        sums[4 * i + 1] += left.y;
        sums[4 * i + 2] += left.z;
        sums[4 * i + 3] += left.w;
      }
    }
  }

 private:
  /// Blocks of one launch, on one GPU, started in the order of their numbers: the wait ends.
  struct no_watch {
    __device__ static bool due(poll_count /*polls*/) { return false; }
    __device__ static wait_outcome look(const wait_site& /*site*/, std::uint64_t /*seen*/) {
      return wait_outcome::ok;
    }
    __device__ static void leave() {}
  };

  /// Returns when all clusters from `first` up to the one before this have left their sums.
  __device__ void await(int first) const {
    const int helper = first + thread_;
    if (helper < block_.cluster) {
      no_watch watch;
      std::uint64_t& ready = ready_of(helper);
      (void)wait_until<one_gpu_memory>(ready, wait_site{.expected = 1}, watch);
      ready = 0;  // for the next launch
    }
    meet_warpgroup(1 + group_);
  }

  [[nodiscard]] __device__ int part_of(int cluster) const {
    return (cluster * config.cluster + static_cast<int>(block_.in_cluster)) * math_groups + group_;
  }
  [[nodiscard]] __device__ std::uint64_t& ready_of(int cluster) const {
    return block_.arguments.ready[part_of(cluster)];
  }
  [[nodiscard]] __device__ float4* sums_of(int cluster) const {
    return reinterpret_cast<float4*>(block_.arguments.partials) +
           static_cast<std::int64_t>(part_of(cluster)) * (count / 4 * group_threads) + thread_;
  }

  const block_view<config>& block_;
  int group_;
  int thread_;
};

}  // namespace untax::sm90

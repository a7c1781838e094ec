#pragma once

#include <cstdint>

#include <cuda/ptx>

#include "engines/gpu/norm/norm_rows.hpp"
#include "engines/gpu/sm90/ptx/barrier.cuh"
#include "engines/gpu/sm90/ptx/cluster_store.cuh"

namespace untax::gpu {

inline constexpr int norm_warps = norm_threads / 32;

/// Memory in which the blocks that share a row exchange one number per warp and part. Two buffers
/// alternate, so that no block writes where another one still reads.
struct row_number_memory {
  static constexpr int most = most_row_parts * norm_warps;

  float of_warps[2][most];
  stage_barrier arrived[2];
};

/// Combines the numbers of all threads of a block, or of the blocks of a cluster, for a row. A
/// barrier in the receiving block counts the stores to it: a release at cluster scope would wait
/// for everything that was sent to peers.
template <int chunks>
class row_numbers {
 public:
  /// All threads of the block must call this. `part`: the number of this block among the `spread`.
  __device__ row_numbers(row_number_memory& shared, int spread, int part)
      : shared_(shared), spread_(spread), part_(part) {
    if (spread_ == 1) return;
    if (threadIdx.x == 0) {
      for (stage_barrier& each : shared_.arrived) {
        each.init(1);
        each.arrive_and_expect(bytes());
      }
      cuda::ptx::fence_mbarrier_init(cuda::ptx::sem_release, cuda::ptx::scope_cluster);
    }
    cuda::ptx::barrier_cluster_arrive(cuda::ptx::sem_relaxed);
  }
  /// Waits until all blocks of the cluster run. All threads must call this once, before they store.
  __device__ void meet_others() const {
    if (spread_ > 1) cuda::ptx::barrier_cluster_wait();
  }

  /// Combines numbers that are not negative; all threads get the same result. If `going` is false
  /// in any thread, all threads get false. All threads must call this.
  ///
  /// The order of combination is that of the elements: it depends on `hidden` alone, not on the
  /// number of rows or on the number of blocks that share one.
  template <class Combine>
  [[nodiscard]] __device__ bool combined(const float (&mine)[chunks], bool going,
                                         const Combine& combine, float& all) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const float* const numbers = shared_.of_warps[turn_ & 1];
#pragma unroll
    for (int k = 0; k < chunks; ++k) {
      float of_warp = mine[k];
#pragma unroll
      for (int step = 16; step > 0; step /= 2)
        of_warp = combine(of_warp, __shfl_xor_sync(everybody, of_warp, step));
      tell((part_ * chunks + k) * norm_warps + static_cast<int>(threadIdx.x) / 32,
           going ? of_warp : -1);
    }
    await();
    static_assert(row_number_memory::most == 64, "two of a lane");
    const int count = spread_ * chunks * norm_warps;
    const float low = lane < count ? numbers[lane] : 0;
    const float high = lane + 32 < count ? numbers[lane + 32] : 0;
    if (__any_sync(everybody, low < 0 || high < 0 ? 1 : 0) != 0) return false;
    all = combine(low, high);
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
      all = combine(all, __shfl_xor_sync(everybody, all, step));
    return true;
  }

 private:
  static constexpr unsigned everybody = 0xffffffffU;

  /// Stores a warp's number in all blocks that share the row.
  __device__ void tell(int which, float number) {
    float* const place = &shared_.of_warps[turn_ & 1][which];
    const int lane = static_cast<int>(threadIdx.x) % 32;
    if (spread_ == 1) {
      if (lane == 0) *place = number;
    } else if (lane < spread_) {
      const auto block = static_cast<std::uint32_t>(lane);
      store_to_block(address_in_block(place, block), number,
                     address_in_block(&shared_.arrived[turn_ & 1].word, block));
    }
  }
  /// Returns when all numbers of this round have arrived.
  __device__ void await() {
    stage_barrier& arrived = shared_.arrived[turn_ & 1];
    const std::uint32_t parity = turn_ / 2 & 1;
    ++turn_;
    if (spread_ == 1) {
      __syncthreads();
      return;
    }
    arrived.wait_for_cluster(parity);
    // The buffer is written again only after all threads of the cluster have passed this point and
    // have stored their numbers in the other buffer.
    if (threadIdx.x == 0) arrived.arrive_and_expect(bytes());
  }
  [[nodiscard]] __device__ std::uint32_t bytes() const {
    return static_cast<std::uint32_t>(spread_ * chunks * norm_warps) * sizeof(float);
  }

  row_number_memory& shared_;
  int spread_;
  int part_;
  std::uint32_t turn_ = 0;  ///< rounds so far
};

}  // namespace untax::gpu

#pragma once

#include <concepts>
#include <cstdint>

#include <untax/core/host_device.hpp>
#include <untax/memory/cuda_memory.cuh>
#include <untax/rma/group.hpp>

namespace untax {

/// A group of threads of a kernel. `lanes` is the number of its threads that run in lockstep: 1, or
/// a warp.
template <class G>
concept device_group =
    thread_group<G> && std::same_as<typename G::memory, cuda_memory> && requires {
  { G::lanes } -> std::convertible_to<int>;
};

/// The calling thread alone.
struct device_thread {
  using memory = cuda_memory;
  static constexpr int lanes = 1;

  [[nodiscard]] __device__ static constexpr int thread_rank() noexcept { return 0; }
  [[nodiscard]] __device__ static constexpr int size() noexcept { return 1; }
  __device__ static constexpr void sync() noexcept {}
  /// Whether `mine` holds for any thread of the group. All threads call it; it synchronises them as
  /// `sync` does.
  [[nodiscard]] __device__ static bool any(bool mine) noexcept { return mine; }
};

/// The 32 threads of the calling thread's warp. All of them have to call each verb.
struct device_warp {
  using memory = cuda_memory;
  static constexpr int lanes = 32;

  [[nodiscard]] __device__ static int thread_rank() noexcept {
    int lane = 0;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    return lane;
  }
  [[nodiscard]] __device__ static constexpr int size() noexcept { return 32; }
  __device__ static void sync() noexcept { __syncwarp(); }
  [[nodiscard]] __device__ static bool any(bool mine) noexcept {
    const bool found = __any_sync(0xffffffffU, mine) != 0;
    __syncwarp();  // a vote orders no memory
    return found;
  }
};

/// All threads of the calling thread's block, of any shape but a whole number of warps. It uses
/// barrier 0 of the block, as __syncthreads does.
struct device_block {
  using memory = cuda_memory;
  static constexpr int lanes = 32;

  [[nodiscard]] __device__ static int thread_rank() noexcept {
    return static_cast<int>(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z));
  }
  [[nodiscard]] __device__ static int size() noexcept {
    return static_cast<int>(blockDim.x * blockDim.y * blockDim.z);
  }
  __device__ static void sync() noexcept { __syncthreads(); }
  [[nodiscard]] __device__ static bool any(bool mine) noexcept {
    return __syncthreads_or(mine) != 0;
  }
};

/// All threads of the kernel, for put, get and copy. The words of a copy are distributed over all
/// blocks one by one, so that the blocks move through memory together. `sync` is that of the block:
/// when a verb returns, the calling block's share is done. A grid cannot signal; its blocks can.
struct device_grid {
  using memory = cuda_memory;
  static constexpr int lanes = 32;

  [[nodiscard]] __device__ static int thread_rank() noexcept {
    const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    return static_cast<int>(block) * device_block::size() + device_block::thread_rank();
  }
  [[nodiscard]] __device__ static int size() noexcept {
    return static_cast<int>(gridDim.x * gridDim.y * gridDim.z) * device_block::size();
  }
  __device__ static void sync() noexcept { __syncthreads(); }
};

/// A contiguous part of [0, count).
struct part {
  std::int64_t begin = 0;
  std::int64_t count = 0;
};
/// The part of [0, count) of the block `index` of `parts`, in whole multiples of `grain`: how the
/// blocks of a kernel divide a copy. A grain should be 16 bytes or more. There must be fewer than
/// 2^31 grains.
template <std::int64_t grain = 1>
[[nodiscard]] UNTAX_HOST_DEVICE constexpr part part_of(std::int64_t count, int index,
                                                       int parts) noexcept {
  const auto grains = static_cast<std::uint32_t>((count + grain - 1) / grain);
  const auto wanted = static_cast<std::uint32_t>(index);
  const std::uint32_t each = grains / static_cast<std::uint32_t>(parts);
  const std::uint32_t rest = grains - each * static_cast<std::uint32_t>(parts);
  const std::uint32_t first = wanted * each + (wanted < rest ? wanted : rest);
  const std::uint32_t last = first + each + (wanted < rest ? 1 : 0);
  const std::int64_t begin = first * grain < count ? first * grain : count;
  const std::int64_t end = last * grain < count ? last * grain : count;
  return {begin, end - begin};
}

/// A group that runs in lockstep as a whole: a thread or a warp.
template <class G>
concept lockstep_group = device_group<G> &&
    (std::derived_from<G, device_thread> || std::derived_from<G, device_warp>);

static_assert(device_group<device_thread> && device_group<device_warp> &&
              device_group<device_block>);

}  // namespace untax

#pragma once

#include <cstdint>

#include <cuda.h>

#include <cuda/ptx>

#include "engines/gpu/sm90/ptx/barrier.cuh"

namespace untax::gpu {

[[nodiscard]] __device__ inline std::uint32_t shared_address(const void* at) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(at));
}

/// Where a TMA tile begins in a matrix; x is the position in a row.
struct tma_coord {
  std::int32_t x;
  std::int32_t y;
};

/// Where a TMA tile begins in one of several matrices of one shape.
struct tma_layer_coord {
  std::int32_t x;
  std::int32_t y;
  std::int32_t layer;
};

/// Prefetches the TMA descriptor of a matrix.
__device__ inline void prefetch(const CUtensorMap& matrix) {
  asm volatile("prefetch.tensormap [%0];" : : "l"(&matrix) : "memory");
}

/// Loads a TMA tile into shared memory; elements outside of the matrix become 0. Completes on
/// mbarrier `arrived`.
__device__ inline void tma_load(void* to, const CUtensorMap& matrix, tma_coord from,
                                stage_barrier& arrived) {
  cuda::ptx::cp_async_bulk_tensor(cuda::ptx::space_cluster, cuda::ptx::space_global, to, &matrix,
                                  {from.x, from.y}, &arrived.word);
}

__device__ inline void tma_load_layer(void* to, const CUtensorMap& layers, tma_layer_coord from,
                                      stage_barrier& arrived) {
  cuda::ptx::cp_async_bulk_tensor(cuda::ptx::space_cluster, cuda::ptx::space_global, to, &layers,
                                  {from.x, from.y, from.layer}, &arrived.word);
}

inline constexpr std::uint64_t evict_first = 0x12f0000000000000;  ///< as createpolicy encodes it

/// As `tma_load`, for data that are read once: L2 evicts the TMA tile first.
__device__ inline void tma_load_once(void* to, const CUtensorMap& matrix, tma_coord from,
                                     stage_barrier& arrived) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".L2::cache_hint [%0], [%1, {%2, %3}], [%4], %5;"
      :
      : "r"(shared_address(to)), "l"(&matrix), "r"(from.x), "r"(from.y),
        "r"(shared_address(&arrived.word)), "l"(evict_first)
      : "memory");
}

/// Prefetches a TMA tile into L2, for a later `tma_load_once`.
__device__ inline void tma_prefetch_once(const CUtensorMap& matrix, tma_coord from) {
  asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global.tile.L2::cache_hint [%0, {%1, %2}], %3;"
               :
               : "l"(&matrix), "r"(from.x), "r"(from.y), "l"(evict_first)
               : "memory");
}

/// As `tma_load`, to every block of the cluster whose bit is set in `blocks`: the tile goes to the
/// same place there, and completes on the mbarrier at the same place there.
__device__ inline void tma_load(void* to, const CUtensorMap& matrix, tma_coord from,
                                stage_barrier& arrived, std::uint16_t blocks) {
  cuda::ptx::cp_async_bulk_tensor(cuda::ptx::space_cluster, cuda::ptx::space_global, to, &matrix,
                                  {from.x, from.y}, &arrived.word, blocks);
}

/// Stores a TMA tile from shared memory; elements outside of the matrix are skipped. A group of TMA
/// tiles ends with `tma_store_commit`.
__device__ inline void tma_store(const CUtensorMap& matrix, tma_coord to, const void* from) {
  cuda::ptx::cp_async_bulk_tensor(cuda::ptx::space_global, cuda::ptx::space_shared, &matrix,
                                  {to.x, to.y}, from);
}
__device__ inline void tma_store_layer(const CUtensorMap& layers, tma_layer_coord to,
                                       const void* from) {
  cuda::ptx::cp_async_bulk_tensor(cuda::ptx::space_global, cuda::ptx::space_shared, &layers,
                                  {to.x, to.y, to.layer}, from);
}
__device__ inline void tma_store_commit() { cuda::ptx::cp_async_bulk_commit_group(); }

/// Returns when the TMA tiles that this thread stored have been read, except the last `left`
/// groups, so that their shared memory can be used again.
template <int left>
__device__ void tma_store_wait_read() {
  cuda::ptx::cp_async_bulk_wait_group_read(cuda::ptx::n32_t<left>());
}

/// Returns when the tiles have been written, except the last `left` groups.
template <int left = 0>
__device__ void tma_store_wait() {
  cuda::ptx::cp_async_bulk_wait_group(cuda::ptx::n32_t<left>());
}

}  // namespace untax::gpu

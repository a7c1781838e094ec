#pragma once

#include <cstddef>

#include <untax/rma/bulk_ring.cuh>

#include "engines/gpu/comm/sender_warps.hpp"

namespace untax::gpu {

using warp_ring = bulk_ring<2>;
/// Of shared memory, for the senders of a block.
inline constexpr int sender_bytes = sender_warps * static_cast<int>(sizeof(warp_ring::memory));

/// The number of the thread's warp as a sender, of block `block`; -1 if it is none.
[[nodiscard]] __device__ inline int sender_number(int block) {
  const auto warp = static_cast<int>(threadIdx.x) / 32;
  return warp < sender_warps ? block * sender_warps + warp : -1;
}

/// By all threads of a block: calls `run(sender, ring)` in the warps that move. `sender` numbers
/// them over all blocks, of which this is number `block`.
template <class Run>
__device__ void each_sender_warp(std::byte* shared, int block, const Run& run) {
  const int me = sender_number(block);
  if (me < 0) return;
  warp_ring ring(device_warp(),
                 reinterpret_cast<warp_ring::memory*>(shared)[static_cast<int>(threadIdx.x) / 32]);
  run(me, ring);
}

}  // namespace untax::gpu

#pragma once

#include <algorithm>

#include "engines/gpu/comm/chunk_sender.cuh"
#include "engines/gpu/comm/sender_warps.cuh"
#include "engines/gpu/comm/step_sender.cuh"
#include "engines/gpu/comm/tma_push.cuh"

namespace untax {

/// Of shared memory, for the senders of a block, at a multiple of 128 bytes.
template <class Protocol>
inline constexpr int moving_bytes =
    std::max(gpu::sender_bytes, static_cast<int>(sizeof(typename tma_push<Protocol>::memory)));

/// What falls to the thread's warp of such a block. That of TMA tiles is nobody's in particular.
template <class Protocol>
[[nodiscard]] __device__ sending_grid::part moving_part(const shard_io<Protocol>& io, int block) {
  if (io.tma_tiles || io.how.pulls()) return {};
  const int me = gpu::sender_number(block);
  return me < 0 ? sending_grid::part() : io.sending.part_of({me, io.senders});
}

/// The senders of a block that only moves, by all of its threads. Wait records of senders begin at
/// `first_slot`. `mine` is what falls to the thread's warp, see `moving_part`.
template <class Protocol>
__device__ void run_senders(const shard_io<Protocol>& io, const sending_grid::part& mine,
                            std::byte* shared, int block, std::uint64_t epoch, int first_slot) {
  if (io.tma_tiles) {
    // The host reports failed waits.
    (void)tma_push<Protocol>::run(io,
                                  *reinterpret_cast<typename tma_push<Protocol>::memory*>(shared),
                                  block, epoch, first_slot + block);
    return;
  }
  gpu::each_sender_warp(shared, block, [&](int me, gpu::warp_ring& ring) {
    using copier = gpu::by_bulk_copies<gpu::warp_ring>;
    if (io.how.pulls()) {
      gpu::step_sender<copier> sender(io.moved, {ring}, first_slot + me);
      io.how.move(me, epoch, sender);
      sender.finish();
    } else {
      chunk_sender<Protocol, copier> sender(io, epoch, {ring}, first_slot + me);
      io.sending.each(mine, sender);
    }
  });
}

}  // namespace untax

#pragma once

#include <algorithm>

#include "engines/sm90/transfer/sender_warps.cuh"
#include "engines/sm90/transfer/step_sender.cuh"
#include "ops/all_gather_gemm/chunk_sender.cuh"
#include "ops/all_gather_gemm/tma_push.cuh"

namespace untax {

/// Of shared memory, for the senders of a block, at a multiple of 128 bytes.
inline constexpr int moving_bytes =
    std::max(sm90::sender_bytes, static_cast<int>(sizeof(tma_push::memory)));

/// What falls to the thread's warp of such a block. That of TMA tiles is nobody's in particular.
[[nodiscard]] __device__ inline sending_grid::part moving_part(const gather_io& io, int block) {
  if (io.tma_tiles || io.how.pulls()) return {};
  const int me = sm90::sender_number(block);
  return me < 0 ? sending_grid::part() : io.sending.part_of({me, io.senders});
}

/// The senders of a block that only moves, by all of its threads. Wait records of senders begin at
/// `first_slot`. `mine` is what falls to the thread's warp, see `moving_part`.
__device__ inline void run_senders(const gather_io& io, const sending_grid::part& mine,
                                   std::byte* shared, int block, std::uint64_t epoch,
                                   int first_slot) {
  if (io.tma_tiles) {
    // The host reports failed waits.
    (void)tma_push::run(io, *reinterpret_cast<tma_push::memory*>(shared), block, epoch,
                        first_slot + block);
    return;
  }
  sm90::each_sender_warp(shared, block, [&](int me, sm90::warp_ring& ring) {
    using copier = sm90::by_bulk_copies<sm90::warp_ring>;
    if (io.how.pulls()) {
      sm90::step_sender<copier> sender(io.moved, {ring}, first_slot + me);
      io.how.move(me, epoch, sender);
      sender.finish();
    } else {
      chunk_sender<copier> sender(io, epoch, {ring}, first_slot + me);
      io.sending.each(mine, sender);
    }
  });
}

}  // namespace untax

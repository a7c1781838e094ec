#pragma once

#include <algorithm>

#include "engines/sm90/transfer/mover_warps.cuh"
#include "engines/sm90/transfer/step_mover.cuh"
#include "ops/all_gather_gemm/box_sender.cuh"
#include "ops/all_gather_gemm/piece_sender.cuh"

namespace untax {

/// Of shared memory, for the movers of a block, at a multiple of 128 bytes.
inline constexpr int moving_bytes =
    std::max(sm90::mover_bytes, static_cast<int>(sizeof(box_sender::memory)));

/// What falls to the thread's warp of such a block. That of boxes is nobody's in particular.
[[nodiscard]] __device__ inline sending_grid::part moving_part(const gather_traffic& traffic,
                                                               int block) {
  if (traffic.boxes || traffic.how.pulls()) return {};
  const int me = sm90::mover_number(block);
  return me < 0 ? sending_grid::part() : traffic.sending.part_of({me, traffic.movers});
}

/// The movers of a block that only moves, by all of its threads. Wait records of movers begin at
/// `first_slot`. `mine` is what falls to the thread's warp, see `moving_part`.
__device__ inline void run_movers(const gather_traffic& traffic, const sending_grid::part& mine,
                                  std::byte* shared, int block, std::uint64_t epoch,
                                  int first_slot) {
  if (traffic.boxes) {
    // A wait that ends badly is for the host to tell.
    (void)box_sender::run(traffic, *reinterpret_cast<box_sender::memory*>(shared), block, epoch,
                          first_slot + block);
    return;
  }
  sm90::each_mover_warp(shared, block, [&](int me, sm90::warp_ring& ring) {
    using copier = sm90::by_bulk_copies<sm90::warp_ring>;
    if (traffic.how.pulls()) {
      sm90::step_mover<copier> mover(traffic.moved, {ring}, first_slot + me);
      traffic.how.move(me, epoch, mover);
      mover.finish();
    } else {
      piece_sender<copier> sender(traffic, epoch, {ring}, first_slot + me);
      traffic.sending.each(mine, sender);
    }
  });
}

}  // namespace untax

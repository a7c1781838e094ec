#pragma once

#include "engines/sm90/transfer/mover_warps.cuh"
#include "engines/sm90/transfer/step_mover.cuh"
#include "ops/all_gather_gemm/sending.cuh"

namespace untax {

/// The movers of a block that only moves, by all of its threads. Wait records of movers begin at
/// `first_slot`.
__device__ inline void run_movers(const gather_traffic& traffic, std::byte* shared, int block,
                                  std::uint64_t epoch, int first_slot) {
  sm90::each_mover_warp(shared, block, [&](int me, sm90::warp_ring& ring) {
    using copier = sm90::by_bulk_copies<sm90::warp_ring>;
    if (traffic.how.pulls()) {
      sm90::step_mover<copier> mover(traffic.moved, {ring}, first_slot + me);
      traffic.how.move(me, epoch, mover);
      mover.finish();
    } else {
      piece_sender<copier> sender(traffic, epoch, {ring}, first_slot + me);
      traffic.sending.each({me, traffic.movers}, sender);
    }
  });
}

}  // namespace untax

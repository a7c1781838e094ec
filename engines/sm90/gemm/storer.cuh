#pragma once

#include "engines/sm90/gemm/block.cuh"
#include "engines/sm90/ptx/tile_copy.cuh"

namespace untax::sm90 {

/// One thread for each math warpgroup: sends what that one staged to C, while it goes on.
template <tile_config config, class Protocol>
__device__ void run_storer(const block_view<config>& block, const Protocol& protocol, int group) {
  auto& shared = block.shared;
  ring_cursor at;
  block.each_work([&](const tile_work& w) {
    if (block.arguments.schedule.leaves_sums(w)) return;
    const int x = block.x_begin(w) + group * chunk_side;
    const int y = block.y_begin(w);
    for (int chunk = 0; chunk < chunks_of(config); ++chunk) {
      const int chunk_y = y + chunk * chunk_side;
      shared.staged[group][at.stage].wait(at.parity);
      const void* from = &shared.staging[group][at.stage];
      store_box(block.arguments.c, config.swapped ? box_at{x, chunk_y} : box_at{chunk_y, x}, from);
      boxes_left_shared();
      shared.taken[group][at.stage].arrive();
      at.advance<staging_buffers>();
    }
    protocol.after_tile(block.place(w));
  });
  // What is still being written is written when the kernel ends.
  if constexpr (Protocol::signals) {
    boxes_stored();
    protocol.after_all();
  }
}

}  // namespace untax::sm90

#pragma once

#include "engines/sm90/gemm/block.cuh"
#include "engines/sm90/ptx/tile_copy.cuh"

namespace untax::sm90 {

/// One thread for each math warpgroup: sends what that one staged to C, to all copies of it, while
/// the warpgroup goes on.
template <tile_config config, class Traffic>
__device__ void run_storer(const block_view<config>& block, Traffic& traffic, int group) {
  constexpr int unread = config.staging - 1;  // chunks that may still be read when one is handed on
  auto& shared = block.shared;
  ring_cursor at;
  ring_cursor taken;
  int sent = 0;
  block.each_work([&](const tile_work& w) {
    if (block.arguments.schedule.leaves_sums(w)) return;
    const int x = block.x_begin(w) + group * group_rows;
    const int y = block.y_begin(w);
    for (int chunk = 0; chunk < chunks_of(config); ++chunk) {
      const int chunk_y = y + chunk * chunk_columns(config);
      shared.staged[group][at.stage].wait(at.parity);
      const void* from = &shared.staging[group][at.stage];
      for (int copy = 0; copy < traffic.copies(); ++copy) {
        const destination to = traffic.copy_of(config.swapped ? chunk_y : x, copy);
        store_box(*to.c, {config.swapped ? x : chunk_y, to.row}, from);
      }
      end_of_boxes();
      at.template advance<config.staging>();
      if constexpr (Traffic::signals) {
        if (traffic.in_turn()) {
          boxes_stored();
          shared.taken[group][taken.stage].arrive();
          taken.template advance<config.staging>();
          continue;
        }
      }
      if (++sent > unread) {
        boxes_left_shared<unread>();
        shared.taken[group][taken.stage].arrive();
        taken.template advance<config.staging>();
      }
    }
    if constexpr (Traffic::signals) traffic.after_tile(block.place(w));
  });
  // What is still being written is written when the kernel ends.
  if constexpr (Traffic::signals) {
    boxes_stored();
    traffic.after_all();
  }
}

}  // namespace untax::sm90

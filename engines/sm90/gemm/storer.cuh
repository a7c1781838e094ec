#pragma once

#include "engines/sm90/gemm/block.cuh"
#include "engines/sm90/gemm/store_pace.cuh"
#include "engines/sm90/ptx/tile_copy.cuh"

namespace untax::sm90 {

/// One thread for each math warpgroup: sends what that one staged to C, while the warpgroup goes
/// on.
template <tile_config config>
class chunk_storer {
 public:
  __device__ chunk_storer(const block_view<config>& block, int group)
      : block_(block), group_(group) {}

  /// C of this rank alone. The places of chunks are used again one after the other.
  template <class Traffic>
  __device__ void store_here(const Traffic& traffic) {
    constexpr int unread = config.staging - 1;  // chunks that may be read when one is handed on
    int sent = 0;
    block_.each_work([&](const tile_work& w) {
      if (leaves_sums(w)) return;
      for (int chunk = 0; chunk < chunks_of(config); ++chunk) {
        await_staged();
        store(w, chunk, traffic, 0);
        hand_over();
        if (++sent > unread) {
          boxes_left_shared<unread>();
          release();
        }
      }
    });
    // What is still being written is written when the kernel ends.
  }

  /// All copies of C. A whole tile has its place, and keeps it until it has left.
  template <class Traffic>
  __device__ void store_everywhere(Traffic& traffic) {
    static_assert(config.staging >= chunks_of(config));
    store_pace pace;
    block_.each_work([&](const tile_work& w) {
      pace.count(w.end - w.begin);
      if (leaves_sums(w)) return;
      for (int chunk = 0; chunk < chunks_of(config); ++chunk) {
        await_staged();
        if (chunk == 0)
          pace.begin_tile((traffic.copies() - 1) * chunks_of(config), slices_after(w));
        for (int copy = 0; copy < traffic.copies(); ++copy) {
          if (copy > 0 && !traffic.in_turn()) pace.await();
          store(w, chunk, traffic, copy);
        }
        hand_over();
      }
      if (traffic.in_turn()) {
        boxes_stored();
      } else {
        boxes_left_shared<0>();
      }
      for (int chunk = 0; chunk < chunks_of(config); ++chunk) release();
      traffic.after_tile(block_.place(w));
    });
    boxes_stored();
    traffic.after_all();
  }

 private:
  [[nodiscard]] __device__ bool leaves_sums(const tile_work& w) const {
    return block_.arguments.schedule.leaves_sums(w);
  }
  /// Of what is multiplied next.
  [[nodiscard]] __device__ int slices_after(const tile_work& w) const {
    const tile_work next = block_.arguments.schedule.next(block_.cluster, w);
    return next.valid() ? next.end - next.begin : 0;
  }

  __device__ void await_staged() {
    block_.shared.staged[group_][staged_.stage].wait(staged_.parity);
  }
  /// Asks for a chunk to be stored to a copy of C.
  template <class Traffic>
  __device__ void store(const tile_work& w, int chunk, const Traffic& traffic, int copy) const {
    const int x = block_.x_begin(w) + group_ * group_rows;
    const int y = block_.y_begin(w) + chunk * chunk_columns(config);
    const destination to = traffic.copy_of(config.swapped ? y : x, copy);
    store_box(*to.c, {config.swapped ? x : y, to.row},
              &block_.shared.staging[group_][staged_.stage]);
  }
  __device__ void hand_over() {
    end_of_boxes();
    staged_.template advance<config.staging>();
  }
  /// The oldest place that is taken may be written again.
  __device__ void release() {
    block_.shared.taken[group_][taken_.stage].arrive();
    taken_.template advance<config.staging>();
  }

  const block_view<config>& block_;
  int group_;
  ring_cursor staged_;
  ring_cursor taken_;
};

template <tile_config config, class Traffic>
__device__ void run_storer(const block_view<config>& block, Traffic& traffic, int group) {
  chunk_storer<config> storer(block, group);
  if constexpr (Traffic::signals) {
    storer.store_everywhere(traffic);
  } else {
    storer.store_here(traffic);
  }
}

}  // namespace untax::sm90

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

  /// C of this rank alone. There are fewer places than a tile has chunks: all that there are leave,
  /// and are then given back, each as soon as it has been read, so that the math finds them free.
  template <class Traffic>
  __device__ void store_here(const Traffic& traffic) {
    block_.each_tile([&](const tile_work& w) {
      if (leaves_sums(w)) return;
      const corner tile = corner_of(w);
      destination to = copy_of(tile, 0, traffic, 0);
      for (int chunk = 0; chunk < chunks_of(config);) {
        await_staged();
        if (config.swapped && chunk > 0) to = copy_of(tile, chunk, traffic, 0);
        store(tile, chunk, to);
        hand_over();
        ++chunk;
        if (chunk % config.staging == 0) {
          give_as_read<config.staging>();
        } else if (chunk == chunks_of(config)) {
          give_as_read<chunks_of(config) % config.staging>();
        }
      }
    });
  }

  /// All copies of C. A whole tile has its place, and keeps it until it has left.
  template <class Traffic>
  __device__ void store_everywhere(Traffic& traffic) {
    static_assert(config.staging >= chunks_of(config));
    static_assert(config.pieces == 1, "who is told counts tiles of blocks");
    store_pace pace;
    block_.each_tile([&](const tile_work& w) {
      pace.count(w.end - w.begin);
      if (leaves_sums(w)) return;
      const corner tile = corner_of(w);
      for (int chunk = 0; chunk < chunks_of(config); ++chunk) {
        await_staged();
        if (chunk == 0)
          pace.begin_tile((traffic.copies() - 1) * chunks_of(config), slices_after(w));
        for (int copy = 0; copy < traffic.copies(); ++copy) {
          if (copy > 0 && !traffic.in_turn()) pace.await();
          store(tile, chunk, copy_of(tile, chunk, traffic, copy));
        }
        hand_over();
      }
      if (traffic.in_turn()) {
        boxes_stored();
      } else {
        boxes_left_shared<0>();
      }
      for (int chunk = 0; chunk < chunks_of(config); ++chunk) give();
      traffic.after_tile(block_.place(w));
    });
    boxes_stored();
    traffic.after_all();
  }

 private:
  [[nodiscard]] __device__ bool leaves_sums(const tile_work& w) const {
    if constexpr (config.pieces > 1) return block_.piece >= shares_of(config);
    return block_.arguments.schedule.leaves_sums(w);
  }
  /// Of what is multiplied next.
  [[nodiscard]] __device__ int slices_after(const tile_work& w) const {
    const tile_work next = block_.next(w);
    return next.valid() ? next.end - next.begin : 0;
  }

  __device__ void await_staged() {
    block_.shared.staged[group_][staged_.stage].wait(staged_.parity);
  }
  /// Where this warpgroup's part of a tile begins. Known before the tile is there, since finding
  /// that out takes longer than handing a chunk on.
  struct corner {
    int x;
    int y;
  };
  [[nodiscard]] __device__ corner corner_of(const tile_work& w) const {
    const tile_schedule::cell at = block_.arguments.schedule.at(w.tile);
    return {block_.x_begin(at) + group_ * group_rows,
            block_.y_begin(at) + static_cast<int>(block_.piece) * share_columns(config)};
  }
  [[nodiscard]] __device__ static int y_of(const corner& tile, int chunk) {
    return tile.y + chunk * chunk_columns(config);
  }
  /// Where a chunk goes in a copy of C: all chunks of a tile to the same rows, unless swapped.
  template <class Traffic>
  [[nodiscard]] __device__ static destination copy_of(const corner& tile, int chunk,
                                                      const Traffic& traffic, int copy) {
    return traffic.copy_of(config.swapped ? y_of(tile, chunk) : tile.x, copy);
  }
  /// Asks for a chunk to be stored.
  __device__ void store(const corner& tile, int chunk, const destination& to) const {
    store_box(*to.c, {config.swapped ? tile.x : y_of(tile, chunk), to.row},
              &block_.shared.staging[group_][staged_.stage]);
  }
  __device__ void hand_over() {
    end_of_boxes();
    staged_.template advance<config.staging>();
  }
  /// The places of the last chunks, the first of them first.
  template <int count>
  __device__ void give_as_read() {
    if constexpr (count > 0) {
      boxes_left_shared<count - 1>();
      give();
      give_as_read<count - 1>();
    }
  }
  /// The place that was given longest ago may be written, again if it has been.
  __device__ void give() {
    block_.shared.given[group_][given_.stage].arrive();
    given_.template advance<config.staging>();
  }

  const block_view<config>& block_;
  int group_;
  ring_cursor staged_;
  ring_cursor given_;
};

/// The first places for results, by the thread that will store them.
template <tile_config config>
__device__ void give_places(const block_view<config>& block, int group) {
  for (stage_barrier& given : block.shared.given[group]) given.arrive();
}

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

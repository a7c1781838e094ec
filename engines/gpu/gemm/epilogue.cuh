#pragma once

#include "engines/gpu/gemm/block.cuh"
#include "engines/gpu/gemm/store_throttle.cuh"
#include "engines/gpu/sm90/ptx/tile_copy.cuh"

namespace untax::gpu {

/// The epilogue of an MMA warpgroup, run by one thread: stores to C what the warpgroup has written
/// into its epilogue buffers, while the warpgroup multiplies the next tile.
template <tile_config config>
class epilogue_store {
 public:
  __device__ epilogue_store(const block_view<config>& block, int group)
      : block_(block), group_(group) {}

  /// Stores to this rank's C only. A tile may have more sub-tiles than there are buffers: when all
  /// buffers have been stored, they are released one by one, each as soon as TMA has read it.
  template <class Sink>
  __device__ void store_here(const Sink& sink) {
    block_.each_tile([&](const work_tile& w) {
      if (stores_partial(w)) return;
      const corner tile = corner_of(w);
      const tile_note noted(block_, full(), full_.parity, action::copy);
      destination to = copy_of(tile, 0, sink, 0);
      for (int subtile = 0; subtile < subtiles_of(config);) {
        await_full();
        if (config.swap_ab && subtile > 0) to = copy_of(tile, subtile, sink, 0);
        store(tile, subtile, to);
        commit();
        ++subtile;
        if (subtile % config.epilogue_buffers == 0) {
          release_as_read<config.epilogue_buffers>();
        } else if (subtile == subtiles_of(config)) {
          release_as_read<subtiles_of(config) % config.epilogue_buffers>();
        }
      }
    });
  }

  /// Stores to all copies of C. Each sub-tile of a tile has its own buffer. The buffers are
  /// released when TMA has read all of them, or, with `in_turn`, when all stores are complete.
  template <class Sink>
  __device__ void store_everywhere(Sink& sink) {
    static_assert(config.epilogue_buffers >= subtiles_of(config));
    static_assert(config.cluster_split_k == 1, "receivers count tiles of blocks");
    store_throttle throttle;
    int number = -1;  // index of the current work
    int last_sent = number;
    if constexpr (adding_sink<Sink>) last_sent = sink.last_sent(block_, group_);
    block_.each_tile([&](const work_tile& w) {
      throttle.count(w.end - w.begin);
      if constexpr (adding_sink<Sink>) {
        if (number++ == last_sent) sink.has_sent(block_.shared.meeting);
      }
      if (stores_partial(w)) return;
      const corner tile = corner_of(w);
      const tile_note noted(block_, full(), full_.parity, action::copy);
      for (int subtile = 0; subtile < subtiles_of(config); ++subtile) {
        await_full();
        if constexpr (adding_sink<Sink>)
          sink.take_sums(block_.shared.meeting.first_sum[group_] <= number);
        const copy_hops copies = sink.copies_of(row_of(tile, subtile));
        if (subtile == 0)
          throttle.begin_tile(copies.peers(sink.world()) * subtiles_of(config),
                              block_.k_blocks_after(w));
        for (int i = 0; i < copies.count; ++i) {
          const int hop = copies.at(i, sink.world());
          if (hop > 0 && !sink.in_turn()) throttle.await();
          store(tile, subtile, copy_of(tile, subtile, sink, hop));
        }
        commit();
      }
      if (sink.in_turn()) {
        tma_store_wait();
      } else {
        tma_store_wait_read<0>();
      }
      for (int subtile = 0; subtile < subtiles_of(config); ++subtile) release();
      sink.after_tile(block_.place(w));
    });
    if constexpr (!adding_sink<Sink>) tma_store_wait();
    if constexpr (adding_sink<Sink>) sink.end_stores(block_.shared.meeting, number == last_sent);
  }

 private:
  [[nodiscard]] __device__ bool stores_partial(const work_tile& w) const {
    if constexpr (config.cluster_split_k > 1) return block_.split >= shares_of(config);
    return block_.arguments.schedule.stores_partial(w);
  }

  [[nodiscard]] __device__ stage_barrier& full() const {
    return block_.shared.epi_full[group_][full_.stage];
  }
  __device__ void await_full() { full().wait(full_.parity); }
  /// The corner of this warpgroup's part of a tile. It is computed before the tile is complete,
  /// since that takes longer than storing a sub-tile.
  struct corner {
    int m;
    int n;
  };
  [[nodiscard]] __device__ corner corner_of(const work_tile& w) const {
    const tile_scheduler::coord at = block_.arguments.schedule.at(w.tile);
    return {block_.m_begin(at) + group_ * warpgroup_rows,
            block_.n_begin(at) + static_cast<int>(block_.split) * share_columns(config)};
  }
  [[nodiscard]] __device__ static int n_of(const corner& tile, int subtile) {
    return tile.n + subtile * subtile_columns(config);
  }
  /// The first row of C of a sub-tile: that of the tile, unless `swap_ab`.
  [[nodiscard]] __device__ static int row_of(const corner& tile, int subtile) {
    return config.swap_ab ? n_of(tile, subtile) : tile.m;
  }
  /// The destination of a sub-tile in the copy of C that is `hop` hops away.
  template <class Sink>
  [[nodiscard]] __device__ static destination copy_of(const corner& tile, int subtile,
                                                      const Sink& sink, int hop) {
    return sink.copy_of(row_of(tile, subtile), hop);
  }
  /// Issues the store of a sub-tile.
  __device__ void store(const corner& tile, int subtile, const destination& to) const {
    tma_store(*to.c, {config.swap_ab ? tile.m : n_of(tile, subtile), to.row},
              &block_.shared.epilogue_buffers[group_][full_.stage]);
  }
  __device__ void commit() {
    tma_store_commit();
    full_.template advance<config.epilogue_buffers>();
  }
  /// Releases the buffers of the last `count` sub-tiles, in order, as TMA has read them.
  template <int count>
  __device__ void release_as_read() {
    if constexpr (count > 0) {
      tma_store_wait_read<count - 1>();
      release();
      release_as_read<count - 1>();
    }
  }
  /// Lets the warpgroup write the next buffer.
  __device__ void release() {
    block_.shared.epi_empty[group_][empty_.stage].arrive();
    empty_.template advance<config.epilogue_buffers>();
  }

  const block_view<config>& block_;
  int group_;
  ring_cursor full_;
  ring_cursor empty_;
};

/// Releases all epilogue buffers for the first time. The thread that stores from them calls this.
template <tile_config config>
__device__ void release_buffers(const block_view<config>& block, int group) {
  for (stage_barrier& empty : block.shared.epi_empty[group]) empty.arrive();
}

template <tile_config config, class Sink>
__device__ void run_epilogue(const block_view<config>& block, Sink& sink, int group) {
  epilogue_store<config> epilogue_warp(block, group);
  if constexpr (signalling_sink<Sink>) {
    epilogue_warp.store_everywhere(sink);
  } else {
    epilogue_warp.store_here(sink);
  }
}

}  // namespace untax::gpu

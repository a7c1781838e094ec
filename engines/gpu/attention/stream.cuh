#pragma once

#include <cstddef>
#include <cstdint>

#include "engines/gpu/attention/merge.cuh"
#include "engines/gpu/attention/mma_consumer.cuh"
#include "engines/gpu/attention/queries.cuh"
#include "engines/gpu/attention/tma_producer.cuh"
#include "engines/gpu/sm90/ptx/cluster.cuh"
#include "engines/gpu/trace/kernel_events.cuh"

namespace untax::gpu {

/// A streaming warp. It loads the keys and values of its tiles through its own ring, and stores the
/// result of each segment in shared memory for the merging warps.
///
/// It finds its tiles before the preceding kernels have ended, from the lengths at that time. The
/// preceding kernels may still change the lengths, so it reads them again after the wait, and
/// restarts if they differ. In a model only the first layer of a step sees changed lengths.
template <class Element, int width, bool paged, bool fixed_parts>
class stream_warp {
  using config = attention_config<width>;
  using work = attention_work<config::keys, fixed_parts>;
  using walk = segment_walk<config::keys, fixed_parts>;
  using producer = tile_producer<width, paged, fixed_parts>;
  /// Up to so many tiles, 256 MB, L2 evicts what was read first, and so keeps the weights of the
  /// kernels around. With more, that costs more than it gains: of 540 MB 5 % of the time, on an
  /// H200.
  static constexpr int most_tiles_evicted_first = (256 << 20) / config::tile_bytes;

 public:
  __device__ stream_warp(const attention_arguments& a, std::uint32_t rings,
                         const query_rows<width>& queries, const block_merge<Element, width>& merge)
      : a_(a),
        warp_(static_cast<int>(threadIdx.x) / 32),
        ring_(rings + warp_ * config::stages * config::tile_bytes),
        queries_(queries),
        merge_(merge) {}

  /// Runs the warp. `lengths`: read before the preceding kernels had ended.
  __device__ void operator()(typename work::lane_lengths lengths) {
    bool known = !work::keeps_all(a_.shape);
    if (known) {
      griddepcontrol_wait();
      lengths = work::read(a_);
    }
#pragma unroll 1
    for (;; known = true) {
      const work mine(a_, lengths);
      walk at(mine);
      producer tiles(a_, at, warp_, mine.tiles() <= most_tiles_evicted_first);
      griddepcontrol_wait();
      lengths = work::read(a_);
      // Without pages, loads stay within the caller's memory for any lengths. With pages, only the
      // final lengths say which entries of the page table are valid.
      if constexpr (paged) {
        known = known || mine.kept(lengths);
        if (!known) continue;
      }
      if (at.valid()) begin(tiles, (*at).item);
      if (known || mine.kept(lengths)) {
        griddepcontrol_launch_dependents();
        merge_.begin();
        note_kernel_begin_behind(a_.run, warp_role::streamer, a_.run.epochs[blockIdx.x]);
        return take(mine, at, tiles);
      }
      wait_for_copies<0>();
    }
  }

 private:
  /// Issues the loads of the first `stages` - 1 tiles, and of the first item's queries.
  __device__ void begin(producer& tiles, const attention_item& item) {
#pragma unroll 1
    for (int i = 0; i + 1 < config::stages; ++i) {
      tiles.load(ring_ + i * config::tile_bytes);
      if (i == 0) queries_.fetch(queried(item.index(a_.shape)), 0);
      commit_copies();
    }
  }

  /// The item whose queries an item has: all parts of a sequence have the same.
  [[nodiscard]] __device__ int queried(int item) const {
    return fixed_parts ? item % a_.shape.items() : item;
  }

  __device__ void take(const work& mine, walk& at, producer& tiles) {
    if (!at.valid()) return merge_.end();
    const action_note noted(a_.run, action::attend);
    constexpr int ahead_of_taken = config::stages - 1;
    wait_for_copies<ahead_of_taken - 1>();
    queries_.arrive();
    std::uint32_t stage = 0;
    std::uint32_t ahead = ahead_of_taken * config::tile_bytes;
    int place = 0;
    int early = 0;  // tiles left for which loads are one copy group further ahead
    warp_attention<Element, width> sums;
    for (int number = 0; at.valid(); ++number) {
      const attention_segment segment = *at;
      const int length = segment.item.length;
      const bool another = !at.last();
      queries_.await(number);
      sums.start(a_.shape, queries_.at(place));
      place = place + 1 < query_rows<width>::places ? place + 1 : 0;
      if (another) queries_.fetch(queried(mine.index_behind(segment.item)), place);
      int tile = at.first_tile(warp_, config::streaming);
      // When the wait for tile `asked` returns, the next item's queries have arrived, too.
      const int asked = tile + ahead_of_taken * config::streaming;
      for (; tile < segment.end; tile += config::streaming) {
        if (early > 0) {
          wait_for_copies<ahead_of_taken>();
        } else {
          wait_for_copies<ahead_of_taken - 1>();
        }
        __syncwarp();
        if (tile == asked && another) queries_.arrive();
        if (early < ahead_of_taken) tiles.load(ring_ + ahead);
        commit_copies();
        if (early > 0) --early;
        sums.take(ring_ + stage, length - tile * config::keys);
        ahead = stage;
        stage += config::tile_bytes;
        if (stage == config::stages * config::tile_bytes) stage = 0;
      }
      if (another && tile <= asked) {
        commit_copies();
        wait_for_copies<0>();
        queries_.arrive();
      }
      at.advance();
      // Storing the result takes as long as a tile takes to arrive, so the load of the next tile is
      // issued first.
      if (at.valid() && early < ahead_of_taken) {
        __syncwarp();
        tiles.load(ring_ + ahead);
        commit_copies();
        early = ahead_of_taken;
      }
      sums.finish();
      merge_.leave(sums, number);
    }
    merge_.end();
    wait_for_copies<0>();
  }

  const attention_arguments& a_;
  int warp_;
  std::uint32_t ring_;
  const query_rows<width>& queries_;
  const block_merge<Element, width>& merge_;
};

}  // namespace untax::gpu

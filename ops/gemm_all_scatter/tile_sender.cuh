#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda/ptx>

#include "engines/sm90/transfer/box_stream.cuh"
#include "engines/sm90/transfer/mutant.hpp"
#include "engines/sm90/transfer/room_waits.cuh"
#include "ops/gemm_all_scatter/publishing.cuh"

namespace untax {

/// A warp that is a mover of the protocol: it sends tiles as these are flagged, each read once and
/// stored to all peers, as boxes that follow each other without a gap as long as there are tiles.
class tile_sender {
 public:
  using stream = sm90::box_stream<sm90::layer_box_at>;
  /// Of shared memory.
  using memory = stream::memory;
  static_assert(sent_tiles::most_box_bytes == sm90::box_bytes);

  /// By one warp. It is number `me` of `traffic.movers`; `slot` names its wait record. A wait that
  /// ends badly is for the host to tell.
  static __device__ void run(const scatter_traffic& traffic, memory& shared, int me,
                             std::uint64_t epoch, int slot) {
    if (device_warp::thread_rank() == 0) {
      shared.init();
      cuda::ptx::fence_mbarrier_init(cuda::ptx::sem_release, cuda::ptx::scope_cluster);
    }
    __syncwarp();
    const scatter_publisher publisher(traffic, me, epoch, slot);
    if (me == 0) publisher.open();
    tile_sender sender(traffic, shared, me, epoch, slot);
    if (sender.turns_ > 0 && !(publisher.reserve() && sender.send())) return;
    (void)publisher.close();
  }

 private:
  __device__ tile_sender(const scatter_traffic& traffic, memory& shared, int me,
                         std::uint64_t epoch, int slot)
      : t_(traffic),
        share_{me, traffic.movers},
        turns_(traffic.sent.turns(share_)),
        epoch_(epoch),
        waits_(traffic.moved.run, slot),
        boxes_(shared, traffic.how.world() - 1) {}

  /// Returns when everything is written at the peers; false after a wait that ended badly. What a
  /// lane releases then covers it.
  [[nodiscard]] __device__ bool send() {
    const int peers = t_.how.world() - 1;
    const auto store = [&](const sm90::layer_box_at& to, const std::byte* from) {
      for (int hop = 1; hop <= peers; ++hop) sm90::store_layer_box(t_.c[hop], to, from);
    };
    const auto stored = [] {};
    const bool leads = device_warp::thread_rank() == 0;
    bool going = true;
    int there = 0;  // so many have been flagged
    for (int turn = 0; turn < turns_; ++turn) {
      if (turn == there) {
        there += flagged_from(turn);
        if (turn == there) {
          // What is already here does not wait with it.
          if (leads) boxes_.drain(store, stored);
          __syncwarp();
          going = await(turn);
          if (!going) break;
          ++there;
        }
        // The copy engine reads what the flags tell of.
        if (leads && !sm90::left_out(sm90::mutant::scatter_proxy))
          cuda::ptx::fence_proxy_async(cuda::ptx::space_global);
      }
      if (!leads) continue;
      const sent_tile tile = t_.sent.at(share_, turn);
      for (int row = 0; row < tile.rows; row += t_.sent.box_rows) {
        const sm90::layer_box_at box{tile.column, tile.row + row, 0};
        boxes_.move(box, t_.own_boxes, box, t_.sent.box_bytes(), store, stored);
      }
    }
    if (leads) boxes_.finish(store, stored);
    __syncwarp();
    return going;
  }

  /// How many tiles, one after the other, lie there from this turn on. Acquire, for all lanes.
  [[nodiscard]] __device__ int flagged_from(int turn) const {
    constexpr int at_a_look = 32;
    const int count = turns_ - turn < at_a_look ? turns_ - turn : at_a_look;
    return sm90::room_waits::first_missing(
        count, epoch_, [&](int i) { return counter(t_.sent.at(share_, turn + i).flag); });
  }
  [[nodiscard]] __device__ bool await(int turn) const {
    return waits_.await(1, [&](int /*i*/) {
      const int flag = t_.sent.at(share_, turn).flag;
      return sm90::held_wait{counter(flag), epoch_, 0, t_.how.rank(), flag, verb::acquire};
    });
  }
  [[nodiscard]] __device__ std::uint64_t* counter(int index) const {
    return t_.moved.run.counters.local(static_cast<std::size_t>(index));
  }

  const scatter_traffic& t_;
  strided share_;
  int turns_;
  std::uint64_t epoch_;
  sm90::room_waits waits_;
  stream boxes_;
};

}  // namespace untax

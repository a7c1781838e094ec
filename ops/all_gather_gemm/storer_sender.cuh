#pragma once

#include <cstdint>

#include <untax/memory/cuda_memory.cuh>

#include "engines/sm90/gemm/protocol.cuh"
#include "engines/sm90/ptx/tile_copy.cuh"
#include "engines/sm90/transfer/mutant.hpp"
#include "ops/all_gather_gemm/shard_sender.cuh"

namespace untax {

/// A storer's warp that pushes pieces of the rank's shard as boxes, before it has anything to
/// store: what `sending_grid::each` calls. For each piece the verbs of the protocol: reserve, move,
/// publish.
///
/// All blocks have a few, which together would fill the link at once, so that the first would come
/// with the last. So each goes when those before it, in the order in which tiles need them, will
/// have left.
class storer_sender {
 public:
  /// `slot` names the wait record of the warp.
  __device__ storer_sender(const gather_traffic& traffic, const sm90::storer_memory& own,
                           std::uint64_t epoch, int slot)
      : t_(traffic), own_(own), sender_(traffic, epoch, slot), start_(cuda_memory::now()) {}

  /// Before the kernels ahead have ended.
  static __device__ void prepare(const gather_traffic& traffic) {
    const int lane = device_warp::thread_rank();
    if (lane == 0) sm90::prefetch(traffic.shard_boxes);
    if (lane < traffic.moved.run.world.ranks) sm90::prefetch(traffic.inbox_boxes[lane]);
  }

  __device__ void operator()(const outgoing_piece& p, int hop, int hops) {
    if (!sender_.reserve(hop, hops)) return;
    const int lane = device_warp::thread_rank();
    if (lane == 0) move(p, hop, hops);
    __syncwarp();
    if (lane < hops) sender_.publish(p, hop + lane);
    __syncwarp();
  }

 private:
  static constexpr unsigned look_nanoseconds = 100;

  __device__ void move(const outgoing_piece& p, int hop, int hops) {
    const sending_grid& grid = t_.sending;
    own_.moved->arrive_and_expect(grid.box_bytes());
    sm90::fetch_layer_box(own_.bytes, t_.shard_boxes, {p.column, p.row, 0}, *own_.moved);
    const std::uint64_t turn = start_ + grid.bytes_before(p, hop) / static_cast<unsigned>(t_.pace);
    own_.moved->wait(parity_);
    parity_ ^= 1;
    while (cuda_memory::now() < turn) __nanosleep(look_nanoseconds);
    for (int i = 0; i < hops; ++i)
      sm90::store_layer_box(t_.inbox_boxes[sender_.peer(hop + i)], {p.column, p.row, sender_.set()},
                            own_.bytes);
    sm90::end_of_boxes();
    if (!sm90::left_out(sm90::mutant::gather_box_wait)) sm90::boxes_stored();
  }

  const gather_traffic& t_;
  sm90::storer_memory own_;
  shard_sender sender_;
  std::uint64_t start_;
  std::uint32_t parity_ = 0;
};

}  // namespace untax

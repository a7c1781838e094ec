#pragma once

#include <cstddef>
#include <cstdint>

#include "engines/sm90/transfer/copiers.cuh"
#include "engines/sm90/transfer/room_waits.cuh"
#include "ops/all_gather_gemm/gather.hpp"

namespace untax {

/// A warp that pushes pieces of the rank's shard: what `sending_grid::each` calls. For each piece
/// the verbs of the protocol: reserve, move, publish.
template <class Copier>
class piece_sender {
 public:
  /// `slot` names the wait record of the warp.
  __device__ piece_sender(const gather_traffic& traffic, std::uint64_t epoch, const Copier& copier,
                          int slot)
      : t_(traffic),
        copier_(copier),
        use_(traffic.how.sets().use_of(epoch)),
        set_(traffic.how.sets().set_of(epoch)),
        waits_(traffic.moved.run, slot) {}

  __device__ void operator()(const outgoing_piece& p, int hop, int hops) {
    if (hop != reserved_) going_ = going_ && reserve(hop, hops);
    reserved_ = hop;
    if (!going_) return;
    const sm90::moved_operands& moved = t_.moved;
    const sending_grid& grid = t_.sending;
    const auto* const from =
        reinterpret_cast<const std::uint16_t*>(moved.run.in) + p.row * moved.a_stride + p.column;
    const std::int64_t there =
        (grid.inbox_row + set_ * grid.set_rows + p.row) * moved.inbox_stride + grid.inbox_column +
        p.column;
    copier_.move(
        hops,
        [&](int copy) {
          return reinterpret_cast<std::uint16_t*>(moved.run.inbox.at(peer(hop + copy))) + there;
        },
        moved.inbox_stride, from, moved.a_stride, p.rows, p.columns);
    copier_.complete();
    __syncwarp();
    const int lane = device_warp::thread_rank();
    if (lane < hops) {
      const auto index = static_cast<std::size_t>(grid.ready_counter(set_, p.index));
      cuda_memory::raise_release(*moved.run.counters.at(peer(hop + lane), index), use_);
    }
    __syncwarp();
  }

 private:
  [[nodiscard]] __device__ int rank() const { return t_.moved.run.world.rank; }
  [[nodiscard]] __device__ int peer(int hop) const {
    const int ranks = t_.moved.run.world.ranks;
    const int to = rank() + hop;
    return to < ranks ? to : to - ranks;
  }

  /// A rank's readers are the same for all of its rooms, so once for each rank is enough. What a
  /// rank sends to itself is ordered by the end of the run.
  [[nodiscard]] __device__ bool reserve(int hop, int hops) const {
    if (use_ == 1) return true;
    const auto part = [&](int i) {
      const int to = peer(hop + i);
      if (to == rank()) return sm90::held_wait{};
      const int counter = t_.sending.free_counter(set_, to);
      return sm90::held_wait{t_.moved.run.counters.local(static_cast<std::size_t>(counter)),
                             use_ - 1,
                             0,
                             to,
                             t_.sending.ready_counter(set_, 0),
                             verb::reserve};
    };
    return waits_.come(hops, part) || waits_.await(hops, part);
  }

  const gather_traffic& t_;
  Copier copier_;
  std::uint64_t use_;
  int set_;
  sm90::room_waits waits_;
  int reserved_ = -1;  // the hop that the last piece began with
  bool going_ = true;
};

}  // namespace untax

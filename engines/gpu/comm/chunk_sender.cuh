#pragma once

#include <cstddef>
#include <cstdint>

#include "engines/gpu/comm/shard_sender.cuh"
#include "engines/gpu/copy/copiers.cuh"

namespace untax {

/// A warp that pushes chunks of the rank's shard, one after the other: what `sending_grid::each`
/// calls. For each chunk the verbs of the protocol: reserve, move, publish.
template <class Protocol, class Copier>
class chunk_sender {
 public:
  /// `slot` names the wait record of the warp.
  __device__ chunk_sender(const shard_io<Protocol>& io, std::uint64_t epoch, const Copier& copier,
                          int slot)
      : t_(io), copier_(copier), sender_(io, epoch, slot) {}

  __device__ void operator()(const outgoing_chunk& p, int hop, int hops) {
    if (!sender_.reserve(hop, hops)) return;
    const gpu::moved_operands& moved = t_.moved;
    const sending_grid& grid = t_.sending;
    const auto* const from =
        reinterpret_cast<const std::uint16_t*>(moved.run.in) + p.row * moved.a_stride + p.column;
    const std::int64_t there =
        (grid.inbox_row + sender_.set() * grid.set_rows + p.row) * moved.inbox_stride +
        grid.inbox_column + p.column;
    copier_.move(
        hops,
        [&](int copy) {
          return reinterpret_cast<std::uint16_t*>(moved.run.inbox.at(sender_.peer(hop + copy))) +
                 there;
        },
        moved.inbox_stride, from, moved.a_stride, p.rows, p.columns);
    copier_.complete();
    __syncwarp();
    const int lane = device_warp::thread_rank();
    if (lane < hops) sender_.publish(p, hop + lane);
    __syncwarp();
  }

 private:
  const shard_io<Protocol>& t_;
  Copier copier_;
  shard_sender<Protocol> sender_;
};

}  // namespace untax

#pragma once

#include <cstdint>

#include <untax/rma/packet.cuh>

#include "engines/gpu/comm/packet_panel.hpp"
#include "engines/gpu/comm/shard_sender.cuh"

namespace untax {

static_assert(sizeof(packet) == packet_panel::bytes);

/// A thread that sends packets to all ranks, nearest first and itself last. By all lanes of a warp.
template <class Io>
class packet_sender {
 public:
  /// `slot` names the wait record of the warp.
  __device__ packet_sender(const Io& gather, std::uint64_t epoch, int slot)
      : g_(gather), epoch_(epoch), sender_(gather, epoch, slot) {}

  __device__ void send(packet_share mine) {
    const int ranks = g_.moved.run.world.ranks;
    for (int turn = 0; turn < mine.turns(); turn += together) {
      packet_share::place at[together];
      std::uint64_t data[together];
#pragma unroll
      for (int i = 0; i < together; ++i) {
        at[i] = mine.take();
        data[i] = at[i].row < 0 ? 0 : load(at[i]);
      }
      // What is sent is on its way here while the readers are asked.
      if (!sender_.reserve(0, ranks)) return;
      for (int hop = 1; hop <= ranks; ++hop) {
        packet* const to =
            reinterpret_cast<packet*>(g_.moved.run.inbox.at(sender_.peer(hop == ranks ? 0 : hop))) +
            sender_.set() * g_.panel.in_set;
#pragma unroll
        for (int i = 0; i < together; ++i) {
          if (at[i].row < 0) continue;
          const int index = g_.panel.at(g_.sending.inbox_row + at[i].row, at[i].column);
          untax::detail::store_packet(to + index, {data[i], epoch_});
        }
      }
    }
  }

 private:
  static constexpr int together = 4;

  [[nodiscard]] __device__ std::uint64_t load(const packet_share::place& p) const {
    const gpu::moved_operands& moved = g_.moved;
    return *reinterpret_cast<const std::uint64_t*>(
        reinterpret_cast<const std::uint16_t*>(moved.run.in) + p.row * moved.a_stride + p.column);
  }

  const Io& g_;
  std::uint64_t epoch_;
  shard_sender<typename Io::protocol> sender_;
};

}  // namespace untax

#pragma once

#include <cstdint>

#include <untax/rma/packet.cuh>

#include "engines/gpu/comm/packet_panel.hpp"
#include "engines/gpu/comm/shard_sender.cuh"
#include "engines/gpu/gemm/io.cuh"

namespace untax {

static_assert(sizeof(packet) == packet_panel::bytes);

/// Sends a thread's packets to all ranks, the nearest first and this rank last. All lanes of a warp
/// must call its functions.
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
      // The loads of A are in flight while the warp waits to reserve.
      if (!sender_.reserve(0, ranks)) return;
      for (int hop = 1; hop <= ranks; ++hop) {
        packet* const to =
            reinterpret_cast<packet*>(g_.moved.run.inbox.at(sender_.peer(hop == ranks ? 0 : hop))) +
            sender_.set() * g_.panel.in_set;
#pragma unroll
        for (int i = 0; i < together; ++i) {
          if (at[i].row < 0) continue;
          const int index = g_.panel.at(g_.shard.inbox_row + at[i].row, at[i].column);
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

/// A thread's part in sending the rank's shard as packets, within the GEMM kernel.
template <class Protocol>
template <class Io>
class packet_senders<Protocol>::view {
 public:
  static constexpr std::size_t comm_smem_bytes = 0;

  explicit __device__ view(const Io& io) : io_(io) {}
  __device__ void begin(std::uint64_t epoch) { epoch_ = epoch; }

  __device__ void prepare_comm() {
    const auto threads = static_cast<int>(blockDim.x);
    mine_ = {io_.shard, static_cast<int>(blockIdx.x) * threads + static_cast<int>(threadIdx.x),
             io_.comm_ctas * threads};
  }
  __device__ void prepare_beside(int warp) {
    const moving_blocks moving{io_.who, io_.arrivals.by_rows, io_.multiplying, io_.senders};
    const int number = static_cast<int>(blockIdx.x) - io_.comm_ctas;
    if (!sends_packets(moving, number, warp)) return;
    const packet_thread me = packet_thread_beside(moving, number, static_cast<int>(threadIdx.x));
    mine_ = {io_.shard, me.number, me.threads};
  }
  __device__ void run_comm(std::byte* /*shared*/) { send(static_cast<int>(threadIdx.x) / 32); }
  __device__ void beside(int warp, const gpu::epilogue_smem& /*own*/) { send(warp); }

 private:
  /// The first slots of wait records belong to the consumer.
  __device__ void send(int warp) {
    const auto warps = static_cast<int>(blockDim.x) / 32;
    const int slot = io_.multiplying * (gpu::warpgroup_threads / 32) +
                     static_cast<int>(blockIdx.x) * warps + warp;
    packet_sender<Io>(io_, epoch_, slot).send(mine_);
  }

  const Io& io_;
  std::uint64_t epoch_ = 0;
  packet_share mine_;
};

}  // namespace untax

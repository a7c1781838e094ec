#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda/ptx>

#include "engines/gpu/channel/mutant.hpp"
#include "engines/gpu/channel/warp_channel.cuh"
#include "engines/gpu/comm/gemm_senders.hpp"
#include "engines/gpu/comm/output_channel.cuh"
#include "engines/gpu/comm/sender_list.cuh"
#include "engines/gpu/copy/tma_copy_ring.cuh"
#include "engines/gpu/gemm/io.cuh"

namespace untax {

/// A warp that is a sender of the protocol: it sends tiles as these are flagged. It loads each tile
/// once and stores it to all peers, as TMA tiles, which it issues back to back as long as flagged
/// tiles are available.
template <class Protocol>
class tile_sender {
 public:
  using stream = gpu::tma_copy_ring<gpu::tma_layer_coord>;
  /// The shared memory of a sender.
  using memory = stream::memory;

  /// All lanes of a warp must call this. The warp is number `me` of `io.senders`; `slot` names its
  /// wait record. The host reports failed waits.
  static __device__ void run(const tile_io<Protocol>& io, memory& shared, int me,
                             std::uint64_t epoch, int slot) {
    if (device_warp::thread_rank() == 0) {
      shared.init();
      cuda::ptx::fence_mbarrier_init(cuda::ptx::sem_release, cuda::ptx::scope_cluster);
    }
    __syncwarp();
    const output_channel<Protocol> output(io, me, epoch, slot);
    if (me == 0) output.open();
    tile_sender sender(io, shared, me, epoch, slot);
    if (sender.list_.count() > 0 && !(output.reserve() && sender.send())) return;
    (void)output.close();
  }

 private:
  __device__ tile_sender(const tile_io<Protocol>& io, memory& shared, int me, std::uint64_t epoch,
                         int slot)
      : t_(io),
        list_(io.sent, me),
        epoch_(epoch),
        channel_(io.moved.run, slot),
        tma_tiles_(shared, io.how.world() - 1) {}

  /// Returns when everything is written at the peers, so that a release by any lane covers it;
  /// false after a failed wait.
  [[nodiscard]] __device__ bool send() {
    const int peers = t_.how.world() - 1;
    const auto store = [&](const gpu::tma_layer_coord& to, const std::byte* from) {
      for (int hop = 1; hop <= peers; ++hop) gpu::tma_store_layer(t_.c[hop], to, from);
    };
    const auto stored = [] {};
    const bool leads = device_warp::thread_rank() == 0;
    bool going = true;
    int there = 0;  // tiles known to be flagged
    for (int turn = 0; turn < list_.count(); ++turn) {
      if (turn == there) {
        there += tile_flags_from(turn);
        if (turn == there) {
          // Tiles that have been loaded are stored before the wait.
          if (leads) tma_tiles_.drain(store, stored);
          __syncwarp();
          going = await(turn);
          if (!going) break;
          ++there;
        }
        // TMA reads what the flags have published.
        if (leads && !gpu::left_out(gpu::mutant::scatter_proxy))
          cuda::ptx::fence_proxy_async(cuda::ptx::space_global);
      }
      if (!leads) continue;
      const comm::transfer tile = list_.at(turn);
      for (int row = 0; row < tile.rows; row += t_.tma_tile.rows) {
        const gpu::tma_layer_coord tma_tile{tile.col, tile.row + row, 0};
        tma_tiles_.move(tma_tile, t_.own_tma_tiles, tma_tile, t_.tma_tile.bytes(), store, stored);
      }
    }
    if (leads) tma_tiles_.finish(store, stored);
    __syncwarp();
    return going;
  }

  /// The number of consecutive flagged tiles from entry `turn` on. Acquire, for all lanes.
  [[nodiscard]] __device__ int tile_flags_from(int turn) const {
    constexpr int at_a_look = 32;
    const int left = list_.count() - turn;
    const int count = left < at_a_look ? left : at_a_look;
    return channel_.first_missing(count, epoch_, [&](int i) { return list_.acquire_of(turn + i); });
  }
  [[nodiscard]] __device__ bool await(int turn) const {
    return channel_.acquire(1, [&](int /*i*/) {
      room r;
      r.producer = t_.how.rank();
      r.number = r.ready = list_.acquire_of(turn);
      r.use = epoch_;
      return r;
    });
  }

  const tile_io<Protocol>& t_;
  comm::sender_list list_;
  std::uint64_t epoch_;
  gpu::warp_channel channel_;
  stream tma_tiles_;
};

/// A thread's part in sending tiles, within the GEMM kernel.
template <class Protocol>
template <class Io>
class tile_senders<Protocol>::view {
 public:
  static constexpr std::size_t comm_smem_bytes = sizeof(typename tile_sender<Protocol>::memory);

  explicit __device__ view(const Io& io) : io_(io) {}
  __device__ void begin(std::uint64_t epoch) { epoch_ = epoch; }
  __device__ void prepare_comm() {}
  __device__ void prepare_beside(int /*warp*/) {}

  /// One warp of the CTA issues TMA copies.
  __device__ void run_comm(std::byte* shared) {
    if (threadIdx.x >= 32) return;
    const auto me = static_cast<int>(blockIdx.x);
    using sender = tile_sender<Protocol>;
    sender::run(io_, *reinterpret_cast<typename sender::memory*>(shared), me, epoch_, me);
  }
  /// One warp of the rank opens C for the peers.
  __device__ void beside(int warp, const gpu::epilogue_smem& /*own*/) {
    const auto block = static_cast<int>(blockIdx.x);
    if (io_.way == scatter_way::store_to_peers && block == io_.comm_ctas && warp == 3)
      output_channel<Protocol>(io_, 0, epoch_, block).open();
  }

 private:
  const tile_io<Protocol>& io_;
  std::uint64_t epoch_ = 0;
};

}  // namespace untax

#pragma once

#include <cstddef>
#include <cstdint>

#include "engines/gpu/comm/shard_sender.cuh"
#include "engines/gpu/copy/completion_queue.cuh"
#include "engines/gpu/copy/tma_copy_ring.cuh"

namespace untax {

/// A block that pushes chunks of the rank's shard as TMA tiles. Two warps execute the verbs of the
/// protocol:
///
///   warp 0   reserve, move    issues the chunks back to back
///   warp 1   publish          covers all chunks that have arrived since its last one
template <class Protocol>
class tma_push {
 public:
  /// Threads of a block that does nothing else.
  static constexpr int threads = 64;

  /// The destination of a TMA tile.
  struct sent_tma_tile {
    gpu::tma_layer_coord to;
    int hop;
    int hops;
  };
  /// The shared memory of the block.
  struct memory {
    gpu::tma_copy_ring<sent_tma_tile>::memory tma_tiles;
    gpu::completion_queue arrived;
  };

  /// All threads of the block, two warps at least, must call this. The block is number `me` of
  /// `io.senders`; `slot` names its wait record, which only warp 0 uses. Each warp returns when its
  /// own part is done; warp 0 returns false after a failed wait.
  static __device__ bool run(const shard_io<Protocol>& io, memory& shared, int me,
                             std::uint64_t epoch, int slot) {
    if (threadIdx.x == 0) {
      shared.tma_tiles.init();
      shared.arrived.init();
      cuda::ptx::fence_mbarrier_init(cuda::ptx::sem_release, cuda::ptx::scope_cluster);
    }
    __syncthreads();
    const int warp = static_cast<int>(threadIdx.x) / 32;
    tma_push sender(io, shared, me, epoch, slot);
    if (warp == 0) return sender.move();
    if (warp == 1) sender.publish();
    return true;
  }

 private:
  __device__ tma_push(const shard_io<Protocol>& io, memory& shared, int me, std::uint64_t epoch,
                      int slot)
      : io_(io), shared_(shared), list_(io.lists, me), sender_(io, epoch, slot) {}

  __device__ bool move() {
    const bool leads = device_warp::thread_rank() == 0;
    gpu::tma_copy_ring<sent_tma_tile> stream(shared_.tma_tiles, list_.hops());
    const auto store = [&](const sent_tma_tile& tma_tile, const std::byte* from) {
      for (int i = 0; i < tma_tile.hops; ++i)
        gpu::tma_store_layer(io_.inbox_tma_tiles[sender_.peer(tma_tile.hop + i)], tma_tile.to,
                             from);
    };
    int arrived = 0;
    const auto stored = [&] { shared_.arrived.add(arrived++); };
    bool going = true;
    const auto bytes = static_cast<std::uint32_t>(io_.shard.chunk_bytes);
    list_.each([&](const comm::transfer& p) {
      going = going && sender_.reserve(p.first_hop, p.hops);
      if (!going || !leads) return;
      stream.move(sent_tma_tile{{p.col, p.row, sender_.set()}, p.first_hop, p.hops},
                  io_.shard_tma_tiles, {p.col, p.row, 0}, bytes, store, stored);
    });
    if (leads) {
      stream.finish(store, stored);
      if (!going) shared_.arrived.abandon(arrived);
    }
    __syncwarp();
    return going;
  }

  __device__ void publish() {
    const int hops = list_.hops();
    if (hops == 0) return;
    const int lane = device_warp::thread_rank();
    shared_.arrived.each(list_.count(), 32 / hops, [&](int first, int n) {
      if (lane >= n * hops) return;
      const comm::transfer p = list_.at(first + lane / hops);
      sender_.publish(p, p.first_hop + lane % hops);
    });
  }

  const shard_io<Protocol>& io_;
  memory& shared_;
  comm::sender_list list_;
  shard_sender<Protocol> sender_;
};

}  // namespace untax

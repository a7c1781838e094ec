#pragma once

#include <cstdint>

#include <untax/memory/cuda_memory.cuh>

#include "engines/gpu/channel/mutant.hpp"
#include "engines/gpu/channel/warp_channel.cuh"
#include "engines/gpu/comm/gemm_senders.hpp"
#include "engines/gpu/comm/sender_list.cuh"
#include "engines/gpu/copy/copiers.cuh"
#include "engines/gpu/gemm/io.cuh"
#include "engines/gpu/sm90/ptx/tile_copy.cuh"

namespace untax {

/// The part that all warps which send chunks of the rank's shard share: the order of peers, the
/// reserve before a chunk and the publish after it.
template <class Protocol>
class shard_sender {
 public:
  /// `slot` names the wait record of the warp.
  __device__ shard_sender(const gather_run<Protocol>& io, std::uint64_t epoch, int slot)
      : io_(io),
        use_(io.how.sets().use_of(epoch)),
        set_(io.how.sets().set_of(epoch)),
        channel_(io.moved.run, slot) {}

  [[nodiscard]] __device__ int set() const { return set_; }
  [[nodiscard]] __device__ int peer(int hop) const {
    const int ranks = io_.moved.run.world.ranks;
    const int to = io_.moved.run.world.rank + hop;
    return to < ranks ? to : to - ranks;
  }

  /// Waits until these peers have read what they were sent in the set's previous use; false if this
  /// wait or an earlier one failed. A rank's readers are the same for all of its rooms, so one wait
  /// per group of peers suffices. What a rank sends to itself is ordered by the end of the run.
  [[nodiscard]] __device__ bool reserve(int hop, int hops) {
    if (hop == reserved_ || !going_) return going_;
    reserved_ = hop;
    const sent_shard& shard = io_.shard;
    // The first use of a set needs no wait. The check is made once here: a check for each room
    // would cost registers.
    if (!shard.counted || use_ == 1) return true;
    if (gpu::left_out(gpu::mutant::gather_reserve)) return true;
    going_ = channel_.reserve_free(hops, [&](int i) {
      const int to = peer(hop + i);
      return to == peer(0) ? room{} : shard.inbox_room(set_, to, shard.ready, use_);
    });
    return going_;
  }

  /// One thread publishes a chunk to the peer that is `hop` hops away. A release.
  __device__ void publish(const comm::transfer& chunk, int hop) const {
    if (gpu::left_out(gpu::mutant::gather_publish) || io_.shard.rows_of(chunk) == 0) return;
    channel_.publish(io_.shard.inbox_room(set_, peer(hop), chunk.publish, use_));
  }

 private:
  const gather_run<Protocol>& io_;
  std::uint64_t use_;
  int set_;
  gpu::warp_channel channel_;
  int reserved_ = -1;  // first hop of the last reserve
  bool going_ = true;
};

/// A warp that pushes the chunks of its list, one after the other. It executes the verbs of the
/// protocol for each chunk: reserve, move, publish.
template <class Protocol, class Copier>
class chunk_sender {
 public:
  /// `slot` names the wait record of the warp.
  __device__ chunk_sender(const shard_io<Protocol>& io, std::uint64_t epoch, const Copier& copier,
                          int slot)
      : io_(io), copier_(copier), sender_(io, epoch, slot) {}

  __device__ void operator()(const comm::transfer& p) {
    const int hop = p.first_hop;
    const int hops = p.hops;
    const int rows = io_.shard.rows_of(p);
    if (rows == 0 || !sender_.reserve(hop, hops)) return;
    const gpu::moved_operands& moved = io_.moved;
    const sent_shard& shard = io_.shard;
    const auto* const from =
        reinterpret_cast<const std::uint16_t*>(moved.run.in) + p.row * moved.a_stride + p.col;
    const std::int64_t there =
        (shard.inbox_row + sender_.set() * shard.set_rows + p.row) * moved.inbox_stride +
        shard.inbox_column + p.col;
    copier_.move(
        hops,
        [&](int copy) {
          return reinterpret_cast<std::uint16_t*>(moved.run.inbox.at(sender_.peer(hop + copy))) +
                 there;
        },
        moved.inbox_stride, from, moved.a_stride, rows, p.cols);
    copier_.complete();
    __syncwarp();
    const int lane = device_warp::thread_rank();
    if (lane < hops) sender_.publish(p, hop + lane);
    __syncwarp();
  }

 private:
  const shard_io<Protocol>& io_;
  Copier copier_;
  shard_sender<Protocol> sender_;
};

/// An epilogue warp that pushes the chunks of its list as TMA tiles, before it has results to
/// store. It executes the verbs of the protocol for each chunk: reserve, move, publish.
///
/// Every block has a few chunks. If all blocks started at once, they would share the link, and the
/// first chunk would arrive with the last. So each chunk starts when the chunks before it, in the
/// order in which tiles need them, should have been sent.
template <class Protocol>
class epilogue_sender {
 public:
  /// `slot` names the wait record of the warp.
  __device__ epilogue_sender(const shard_io<Protocol>& io, const gpu::epilogue_smem& own,
                             std::uint64_t epoch, int slot)
      : io_(io), own_(own), sender_(io, epoch, slot), start_(cuda_memory::now()) {}

  /// Prefetches tensor maps. May be called before the kernels ahead have ended.
  static __device__ void prepare(const shard_io<Protocol>& io) {
    const int lane = device_warp::thread_rank();
    if (lane == 0) gpu::prefetch(io.shard_tma_tiles);
    if (lane < io.moved.run.world.ranks) gpu::prefetch(io.inbox_tma_tiles[lane]);
  }

  __device__ void operator()(const comm::transfer& p) {
    if (!sender_.reserve(p.first_hop, p.hops)) return;
    const int lane = device_warp::thread_rank();
    if (lane == 0) move(p);
    __syncwarp();
    if (lane < p.hops) sender_.publish(p, p.first_hop + lane);
    __syncwarp();
  }

 private:
  static constexpr unsigned look_nanoseconds = 100;

  __device__ void move(const comm::transfer& p) {
    const auto bytes = static_cast<unsigned>(io_.shard.chunk_bytes);
    own_.moved->arrive_and_expect(bytes);
    gpu::tma_load_layer(own_.bytes, io_.shard_tma_tiles, {p.col, p.row, 0}, *own_.moved);
    const std::uint64_t before = std::uint64_t{bytes} * static_cast<unsigned>(p.before);
    const std::uint64_t turn = start_ + before / static_cast<unsigned>(io_.rate_limit);
    own_.moved->wait(parity_);
    parity_ ^= 1;
    while (cuda_memory::now() < turn) __nanosleep(look_nanoseconds);
    for (int i = 0; i < p.hops; ++i)
      gpu::tma_store_layer(io_.inbox_tma_tiles[sender_.peer(p.first_hop + i)],
                           {p.col, p.row, sender_.set()}, own_.bytes);
    gpu::tma_store_commit();
    if (!gpu::left_out(gpu::mutant::gather_tma_wait)) gpu::tma_store_wait();
  }

  const shard_io<Protocol>& io_;
  gpu::epilogue_smem own_;
  shard_sender<Protocol> sender_;
  std::uint64_t start_;
  std::uint32_t parity_ = 0;
};

}  // namespace untax

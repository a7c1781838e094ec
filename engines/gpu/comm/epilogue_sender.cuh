#pragma once

#include <cstdint>

#include <untax/memory/cuda_memory.cuh>

#include "engines/gpu/channel/mutant.hpp"
#include "engines/gpu/comm/shard_sender.cuh"
#include "engines/gpu/gemm/io.cuh"
#include "engines/gpu/sm90/ptx/tile_copy.cuh"

namespace untax {

/// An epilogue warp that pushes chunks of the rank's shard as TMA tiles, before it has
/// anything to store: what goes through its list. For each chunk the verbs of the protocol:
/// reserve, move, publish.
///
/// All blocks have a few, which together would fill the link at once, so that the first would come
/// with the last. So each goes when those before it, in the order in which tiles need them, will
/// have left.
template <class Protocol>
class epilogue_sender {
 public:
  /// `slot` names the wait record of the warp.
  __device__ epilogue_sender(const shard_io<Protocol>& io, const gpu::epilogue_smem& own,
                             std::uint64_t epoch, int slot)
      : t_(io), own_(own), sender_(io, epoch, slot), start_(cuda_memory::now()) {}

  /// Before the kernels ahead have ended.
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
    const auto bytes = static_cast<unsigned>(t_.shard.chunk_bytes);
    own_.moved->arrive_and_expect(bytes);
    gpu::tma_load_layer(own_.bytes, t_.shard_tma_tiles, {p.col, p.row, 0}, *own_.moved);
    const std::uint64_t before = std::uint64_t{bytes} * static_cast<unsigned>(p.before);
    const std::uint64_t turn = start_ + before / static_cast<unsigned>(t_.rate_limit);
    own_.moved->wait(parity_);
    parity_ ^= 1;
    while (cuda_memory::now() < turn) __nanosleep(look_nanoseconds);
    for (int i = 0; i < p.hops; ++i)
      gpu::tma_store_layer(t_.inbox_tma_tiles[sender_.peer(p.first_hop + i)],
                           {p.col, p.row, sender_.set()}, own_.bytes);
    gpu::tma_store_commit();
    if (!gpu::left_out(gpu::mutant::gather_tma_wait)) gpu::tma_store_wait();
  }

  const shard_io<Protocol>& t_;
  gpu::epilogue_smem own_;
  shard_sender<Protocol> sender_;
  std::uint64_t start_;
  std::uint32_t parity_ = 0;
};

}  // namespace untax

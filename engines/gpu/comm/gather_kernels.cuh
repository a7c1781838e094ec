#pragma once

#include <cstdint>

#include <cuda/ptx>

#include "engines/gpu/channel/warp_channel.cuh"
#include "engines/gpu/comm/gemm_senders.hpp"
#include "engines/gpu/comm/moved_shard.hpp"
#include "engines/gpu/comm/shard_senders.cuh"
#include "engines/gpu/sm90/ptx/cluster.cuh"
#include "engines/gpu/trace/block_run.cuh"
#include "src/symmetric/cuda/launching.hpp"

namespace untax {

/// Waits for a sender's share of the chunks of peers; the next kernel may then read them, also by
/// TMA. All lanes of a warp must call this. The wait record is the sender's.
__device__ inline void await_incoming(const receiving_grid& incoming, strided share,
                                      const gpu::run_arguments& run, const room_sets& sets,
                                      std::uint64_t epoch) {
  const int set = sets.set_of(epoch);
  const std::uint64_t use = sets.use_of(epoch);
  const gpu::warp_channel channel(run, share.worker);
  // The host reports failed waits.
  (void)channel.acquire(incoming.count(share), [&](int i) {
    const incoming_chunk p = incoming.at(share, set, i);
    room r;
    r.producer = p.source;
    r.number = r.ready = p.ready;
    r.use = use;
    return r;
  });
  // TMA of the next kernel reads what was acquired.
  cuda::ptx::fence_proxy_async(cuda::ptx::space_global);
}

/// Calls `run(block, epoch)` after the kernels ahead have ended and before the GEMM. All threads of
/// the block must call this.
template <class Run>
__device__ void gather_in_block(const gpu::launch_trace& trace, std::uint64_t* epochs,
                                const Run& run) {
  gpu::griddepcontrol_wait();
  // The GEMM may launch now. Earlier, its blocks would occupy SMs that kernels ahead still need.
  gpu::griddepcontrol_launch_dependents();
  const auto block = static_cast<int>(blockIdx.x);
  const gpu::block_run mine(trace, epochs[block]);
  run(block, mine.epoch());
  __syncthreads();
  mine.end();
}

template <class Protocol>
__global__ void __launch_bounds__(gpu::sender_warps * 32)
    gather_comm_kernel(const __grid_constant__ shard_io<Protocol> io, std::uint64_t* epochs) {
  extern __shared__ __align__(128) std::byte shared[];
  if (io.dry()) return;
  const auto block = static_cast<int>(blockIdx.x);
  const gpu::block_run me(io.moved.run, epochs[block]);
  // The first slots belong to blocks of the GEMM that runs beside this kernel.
  run_senders(io, moving_part(io, block), shared, block, me.epoch(), io.comm_ctas + io.multiplying);
  __syncthreads();
  me.end();
}

template <class Protocol>
void move_gathered(const shard_io<Protocol>& io, std::uint64_t* epochs, int blocks,
                   cudaStream_t stream) {
  gpu::start_in_pairs(false, gather_comm_kernel<Protocol>, blocks, gpu::sender_warps * 32,
                      moving_bytes<Protocol>, stream, "cannot start a gather", io, epochs);
}

// Without the second bound ptxas limits the kernel to 64 registers, which needs a spill.
template <class Protocol>
__global__ void __launch_bounds__(tma_push<Protocol>::threads, 1)
    gather_tma_kernel(const __grid_constant__ shard_io<Protocol> io,
                      const __grid_constant__ receiving_grid incoming, std::uint64_t* epochs) {
  using push = tma_push<Protocol>;
  extern __shared__ __align__(128) std::byte shared[];
  if (io.dry()) return;
  gather_in_block(io.moved.run, epochs, [&](int block, std::uint64_t epoch) {
    const bool sent =
        push::run(io, *reinterpret_cast<typename push::memory*>(shared), block, epoch, block);
    // Meanwhile the other warp publishes the last TMA tiles.
    if (sent && threadIdx.x < 32)
      await_incoming(incoming, {block, io.senders}, io.moved.run, io.how.sets(), epoch);
  });
}

template <class Protocol>
void gather_all_by_tma(const shard_io<Protocol>& io, const receiving_grid& incoming,
                       std::uint64_t* epochs, int blocks, bool early, cudaStream_t stream) {
  using push = tma_push<Protocol>;
  gpu::prefer_shared_memory(gather_tma_kernel<Protocol>);
  gpu::start_in_pairs(early, gather_tma_kernel<Protocol>, blocks, push::threads,
                      sizeof(typename push::memory), stream, "cannot start a gather", io, incoming,
                      epochs);
}

}  // namespace untax

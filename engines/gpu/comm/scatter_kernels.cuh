#pragma once

#include <cstdint>

#include <untax/tile/order.hpp>

#include "engines/gpu/comm/gemm_senders.hpp"
#include "engines/gpu/comm/output_channel.cuh"
#include "engines/gpu/comm/tile_senders.cuh"
#include "engines/gpu/copy/copiers.cuh"
#include "engines/gpu/sm90/ptx/cluster.cuh"
#include "engines/gpu/trace/block_run.cuh"
#include "src/symmetric/cuda/launching.hpp"

namespace untax {

/// A block is one warp, which issues TMA copies.
template <class Protocol>
__global__ void __launch_bounds__(32)
    scatter_comm_kernel(const __grid_constant__ tile_io<Protocol> io, std::uint64_t* epochs) {
  extern __shared__ __align__(128) std::byte shared[];
  if (io.dry()) return;
  const auto me = static_cast<int>(blockIdx.x);
  const gpu::block_run mine(io.moved.run, epochs[me]);
  // The first slots belong to blocks of the GEMM that runs beside this kernel.
  tile_sender<Protocol>::run(io, *reinterpret_cast<typename tile_sender<Protocol>::memory*>(shared),
                             me, mine.epoch(), io.multiplying + me);
  mine.end();
}

template <class Protocol>
__global__ void __launch_bounds__(32)
    meet_kernel(const __grid_constant__ tile_io<Protocol> io, std::uint64_t* word, bool opens) {
  if (io.dry()) return;
  const gpu::block_run mine(io.moved.run, *word);
  const output_channel<Protocol> all(io, 0, mine.epoch(), 0);
  if (opens) {
    all.open();
    (void)all.reserve();
  } else {
    (void)all.close();
  }
  mine.end();
}

template <class Protocol>
void meet_scattered(const tile_io<Protocol>& io, scatter_meeting what, std::uint64_t* epoch,
                    cudaStream_t stream) {
  meet_kernel<Protocol><<<1, 32, 0, stream>>>(io, epoch, what == scatter_meeting::opens);
  gpu::require(cudaGetLastError(), "cannot start a meeting of ranks");
}

template <class Protocol>
void move_scattered(const tile_io<Protocol>& io, std::uint64_t* epochs, int blocks,
                    cudaStream_t stream) {
  gpu::start_in_pairs(false, scatter_comm_kernel<Protocol>, blocks, 32,
                      sizeof(typename tile_sender<Protocol>::memory), stream,
                      "cannot start a scatter", io, epochs);
}

/// A block of a kernel that sends all results after these have been computed: a sender of the
/// protocol, which opens C, sends its tiles and closes. All threads call its functions. Only the
/// end of the kernel synchronises blocks.
template <class Protocol>
class scattering_block {
 public:
  __device__ scattering_block(const tile_io<Protocol>& io, std::uint64_t epoch)
      : io_(io), me_(static_cast<int>(blockIdx.x)), output_(io, me_, epoch, me_) {}

  __device__ void run() {
    const bool speaks = threadIdx.x < 32;
    if (speaks && me_ == 0) output_.open();
    if (io_.how.world() > 1) send();
    __syncthreads();
    // The host reports failed waits.
    if (speaks && going_) (void)output_.close();
  }

 private:
  __device__ void send() {
    const tile_grid tiles = io_.how.tiles();
    const strided share{me_, io_.senders};
    for (int i = 0; i < share.share_of(tiles.count()); ++i) {
      const int tile = share.at(i);
      send(tiles.rows_of(tile), tiles.cols_of(tile));
    }
  }

  __device__ void send(range rows, range columns) {
    const int rank = io_.how.rank();
    const int ranks = io_.how.world();
    const gpu::moved_operands& moved = io_.moved;
    // The loads are in flight while peers open their C.
    gpu::block_copy words({moved.at({operand::c, rank, rows.begin, columns.begin}), moved.c_stride,
                           moved.c_stride, static_cast<int>(rows.size),
                           static_cast<int>(columns.size)});
    if (!reserved_) going_ = __syncthreads_and(reserve() ? 1 : 0) != 0;
    reserved_ = true;
    if (!going_) return;
    words.write(ranks - 1, [&](int copy) {
      const int peer = receiver_at_hop(rank, copy + 1, ranks);
      return moved.at({operand::c, peer, rows.begin, columns.begin});
    });
  }
  /// The first warp waits. All tiles of a rank go to the same peers, so one wait is enough.
  [[nodiscard]] __device__ bool reserve() const { return threadIdx.x >= 32 || output_.reserve(); }

  const tile_io<Protocol>& io_;
  int me_;
  output_channel<Protocol> output_;
  bool reserved_ = false;
  bool going_ = true;
};

template <class Protocol>
__global__ void __launch_bounds__(gpu::copying_threads)
    scatter_kernel(const __grid_constant__ tile_io<Protocol> io, std::uint64_t* epochs) {
  if (io.dry()) return;
  gpu::griddepcontrol_wait();
  gpu::griddepcontrol_launch_dependents();
  const gpu::block_run mine(io.moved.run, epochs[blockIdx.x]);
  scattering_block<Protocol>(io, mine.epoch()).run();
  __syncthreads();
  mine.end();
}

template <class Protocol>
void scatter_all(const tile_io<Protocol>& io, std::uint64_t* epochs, bool early,
                 cudaStream_t stream) {
  gpu::prefer_shared_memory(scatter_kernel<Protocol>);
  gpu::start_pdl(early, scatter_kernel<Protocol>, io.senders, gpu::copying_threads, stream,
                 "cannot start a scatter", io, epochs);
}

}  // namespace untax

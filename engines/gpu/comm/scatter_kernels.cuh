#pragma once

#include "engines/gpu/comm/bulk_scatter.cuh"
#include "engines/gpu/comm/output_channel.cuh"
#include "engines/gpu/comm/scatter_kernels.hpp"
#include "engines/gpu/comm/tile_sender.cuh"
#include "engines/gpu/sm90/ptx/cluster.cuh"
#include "src/symmetric/cuda/launching.hpp"

namespace untax {

/// One warp of a block issues TMA copies.
template <class Protocol>
__global__ void __launch_bounds__(32)
    scatter_comm_kernel(const __grid_constant__ tile_io<Protocol> io, std::uint64_t* epochs) {
  extern __shared__ __align__(128) std::byte shared[];
  if (io.dry()) return;
  const auto me = static_cast<int>(blockIdx.x);
  const std::uint64_t epoch = epochs[me] + 1;
  // Blocks of the GEMM beside it have the first slots.
  tile_sender<Protocol>::run(io, *reinterpret_cast<typename tile_sender<Protocol>::memory*>(shared),
                             me, epoch, io.multiplying + me);
  if (threadIdx.x == 0) epochs[me] = epoch;
}

template <class Protocol>
__global__ void __launch_bounds__(32)
    meet_kernel(const __grid_constant__ tile_io<Protocol> io, std::uint64_t* word, bool opens) {
  if (io.dry()) return;
  const std::uint64_t epoch = *word + 1;
  const output_channel<Protocol> all(io, 0, epoch, 0);
  if (opens) {
    all.open();
    (void)all.reserve();
  } else {
    (void)all.close();
  }
  if (threadIdx.x == 0) *word = epoch;
}

template <class Protocol>
void meet(const tile_io<Protocol>& io, std::uint64_t* epoch, bool opens, cudaStream_t stream) {
  meet_kernel<Protocol><<<1, 32, 0, stream>>>(io, epoch, opens);
  gpu::require(cudaGetLastError(), "cannot start a meeting of ranks");
}

template <class Protocol>
void move_scattered(const tile_io<Protocol>& io, std::uint64_t* epochs, int blocks,
                    cudaStream_t stream) {
  gpu::start_in_pairs(false, scatter_comm_kernel<Protocol>, blocks, 32,
                      sizeof(typename tile_sender<Protocol>::memory), stream,
                      "cannot start a scatter", io, epochs);
}

template <class Protocol>
void open_scattered(const tile_io<Protocol>& io, std::uint64_t* epoch, cudaStream_t stream) {
  meet(io, epoch, true, stream);
}
template <class Protocol>
void close_scattered(const tile_io<Protocol>& io, std::uint64_t* epoch, cudaStream_t stream) {
  meet(io, epoch, false, stream);
}

template <class Protocol>
__global__ void __launch_bounds__(gpu::copying_threads)
    scatter_kernel(const __grid_constant__ tile_io<Protocol> io, std::uint64_t* epochs) {
  if (io.dry()) return;
  gpu::griddepcontrol_wait();
  gpu::griddepcontrol_launch_dependents();
  std::uint64_t& word = epochs[blockIdx.x];
  const std::uint64_t epoch = word + 1;
  scattering_block<Protocol>(io, epoch).run();
  __syncthreads();
  if (threadIdx.x == 0) word = epoch;
}

template <class Protocol>
void scatter_all(const tile_io<Protocol>& io, std::uint64_t* epochs, bool early,
                 cudaStream_t stream) {
  gpu::prefer_shared_memory(scatter_kernel<Protocol>);
  gpu::start_pdl(early, scatter_kernel<Protocol>, io.senders, gpu::copying_threads, stream,
                 "cannot start a scatter", io, epochs);
}

}  // namespace untax

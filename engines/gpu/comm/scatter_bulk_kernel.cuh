#pragma once

#include "engines/gpu/comm/bulk_scatter.cuh"
#include "engines/gpu/comm/scatter_kernels.hpp"
#include "engines/gpu/sm90/ptx/cluster.cuh"
#include "src/symmetric/cuda/launching.hpp"

namespace untax {

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

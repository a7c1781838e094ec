#pragma once

#include "engines/gpu/comm/gather_kernels.hpp"
#pragma once

#include "engines/gpu/comm/run_senders.cuh"
#include "src/symmetric/cuda/launching.hpp"

namespace untax {

template <class Protocol>
__global__ void __launch_bounds__(gpu::sender_warps * 32)
    gather_comm_kernel(const __grid_constant__ shard_io<Protocol> io, std::uint64_t* epochs) {
  extern __shared__ __align__(128) std::byte shared[];
  if (io.dry()) return;
  const auto block = static_cast<int>(blockIdx.x);
  const std::uint64_t epoch = epochs[block] + 1;
  // Blocks of the GEMM beside it have the first slots.
  run_senders(io, moving_part(io, block), shared, block, epoch, io.comm_ctas + io.multiplying);
  __syncthreads();
  if (threadIdx.x == 0) epochs[block] = epoch;
}

template <class Protocol>
void move_gathered(const shard_io<Protocol>& io, std::uint64_t* epochs, int blocks,
                   cudaStream_t stream) {
  gpu::start_in_pairs(false, gather_comm_kernel<Protocol>, blocks, gpu::sender_warps * 32,
                      moving_bytes<Protocol>, stream, "cannot start a gather", io, epochs);
}

}  // namespace untax

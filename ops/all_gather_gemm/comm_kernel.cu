#include "ops/all_gather_gemm/gather_kernels.hpp"
#include "ops/all_gather_gemm/run_senders.cuh"
#include "src/symmetric/cuda/launching.hpp"

namespace untax {
namespace {

__global__ void __launch_bounds__(sm90::sender_warps * 32)
    move_kernel(const __grid_constant__ gather_io io, std::uint64_t* epochs) {
  extern __shared__ __align__(128) std::byte shared[];
  if (io.dry()) return;
  const auto block = static_cast<int>(blockIdx.x);
  const std::uint64_t epoch = epochs[block] + 1;
  // Blocks of the GEMM beside it have the first slots.
  run_senders(io, moving_part(io, block), shared, block, epoch, io.comm_ctas + io.multiplying);
  __syncthreads();
  if (threadIdx.x == 0) epochs[block] = epoch;
}

}  // namespace

void move_gathered(const gather_io& io, std::uint64_t* epochs, int blocks, cudaStream_t stream) {
  gpu::start_in_pairs(false, move_kernel, blocks, sm90::sender_warps * 32, moving_bytes, stream,
                      "cannot start a gather", io, epochs);
}

}  // namespace untax

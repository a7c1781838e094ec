#include "ops/all_gather_gemm/gather_kernels.hpp"
#include "ops/all_gather_gemm/moving.cuh"
#include "src/symmetric/cuda/launching.hpp"

namespace untax {
namespace {

__global__ void __launch_bounds__(sm90::mover_warps * 32)
    move_kernel(const __grid_constant__ gather_traffic traffic, std::uint64_t* epochs) {
  extern __shared__ __align__(128) std::byte shared[];
  if (traffic.dry()) return;
  const auto block = static_cast<int>(blockIdx.x);
  const std::uint64_t epoch = epochs[block] + 1;
  // Blocks of the GEMM beside it have the first slots.
  run_movers(traffic, moving_part(traffic, block), shared, block, epoch,
             traffic.leading + traffic.multiplying);
  __syncthreads();
  if (threadIdx.x == 0) epochs[block] = epoch;
}

}  // namespace

void move_gathered(const gather_traffic& traffic, std::uint64_t* epochs, int blocks,
                   cudaStream_t stream) {
  gpu::start_in_pairs(false, move_kernel, blocks, sm90::mover_warps * 32, moving_bytes, stream,
                      "cannot start a gather", traffic, epochs);
}

}  // namespace untax

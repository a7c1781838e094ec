#include "ops/all_gather_gemm/gather_kernels.hpp"
#include "ops/all_gather_gemm/moving.cuh"
#include "src/symmetric/cuda/driver.hpp"

namespace untax {
namespace {

__global__ void __launch_bounds__(sm90::mover_warps * 32)
    move_kernel(const __grid_constant__ gather_traffic traffic, std::uint64_t* epochs) {
  extern __shared__ __align__(128) std::byte shared[];
  if (traffic.moved.run.launch < 0) return;
  const auto block = static_cast<int>(blockIdx.x);
  const std::uint64_t epoch = epochs[block] + 1;
  // Blocks of the GEMM beside it have the first slots.
  run_movers(traffic, shared, block, epoch, traffic.leading + traffic.multiplying);
  __syncthreads();
  if (threadIdx.x == 0) epochs[block] = epoch;
}

}  // namespace

void move_gathered(const gather_traffic& traffic, std::uint64_t* epochs, int blocks,
                   cudaStream_t stream) {
  constexpr int bytes = sm90::mover_bytes;
  gpu::require(
      cudaFuncSetAttribute(move_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
      "there is not enough shared memory for a gather");
  move_kernel<<<static_cast<unsigned>(blocks), sm90::mover_warps * 32, bytes, stream>>>(traffic,
                                                                                        epochs);
  gpu::require(cudaGetLastError(), "cannot start a gather");
}

}  // namespace untax

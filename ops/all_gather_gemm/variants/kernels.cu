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
  constexpr int bytes = moving_bytes;
  gpu::require(
      cudaFuncSetAttribute(move_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
      "there is not enough shared memory for a gather");
  // In pairs, as multiprocessors come: one that is left alone has no room for a cluster of a GEMM.
  cudaLaunchAttribute pairs{};
  pairs.id = cudaLaunchAttributeClusterDimension;
  pairs.val.clusterDim = {2, 1, 1};
  cudaLaunchConfig_t launch{};
  launch.gridDim = dim3(static_cast<unsigned>(blocks));
  launch.blockDim = dim3(sm90::mover_warps * 32);
  launch.dynamicSmemBytes = bytes;
  launch.stream = stream;
  launch.attrs = &pairs;
  launch.numAttrs = 1;
  gpu::require(cudaLaunchKernelEx(&launch, move_kernel, traffic, epochs), "cannot start a gather");
}

}  // namespace untax

#include "engines/sm90/ptx/cluster.cuh"
#include "ops/gemm_all_scatter/scatter_at_once.cuh"
#include "ops/gemm_all_scatter/scatter_kernels.hpp"
#include "src/symmetric/cuda/launching.hpp"

namespace untax {
namespace {

__global__ void __launch_bounds__(sm90::copying_threads)
    scatter_kernel(const __grid_constant__ scatter_traffic traffic, std::uint64_t* epochs) {
  if (traffic.dry()) return;
  sm90::await_kernels_before();
  sm90::let_next_kernel_start();
  std::uint64_t& word = epochs[blockIdx.x];
  const std::uint64_t epoch = word + 1;
  scattering_block(traffic, epoch).run();
  __syncthreads();
  if (threadIdx.x == 0) word = epoch;
}

}  // namespace

void scatter_all(const scatter_traffic& traffic, std::uint64_t* epochs, bool early,
                 cudaStream_t stream) {
  gpu::prefer_shared_memory(scatter_kernel);
  gpu::start_early(early, scatter_kernel, traffic.movers, sm90::copying_threads, stream,
                   "cannot start a scatter", traffic, epochs);
}

}  // namespace untax

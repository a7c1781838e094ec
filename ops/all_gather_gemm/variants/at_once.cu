#include "engines/sm90/ptx/cluster.cuh"
#include "ops/all_gather_gemm/gather_at_once.cuh"
#include "ops/all_gather_gemm/gather_kernels.hpp"
#include "src/symmetric/cuda/launching.hpp"

namespace untax {
namespace {

__global__ void __launch_bounds__(sm90::copying_threads)
    gather_kernel(const __grid_constant__ gather_at_once what, std::uint64_t* epochs) {
  if (what.dry()) return;
  sm90::await_kernels_before();
  // Now the GEMM may get ready. Earlier, its blocks would wait in places of what is before.
  sm90::let_next_kernel_start();
  std::uint64_t& word = epochs[blockIdx.x];
  const std::uint64_t epoch = word + 1;
  gathering_block block(what, epoch);
  block.send();
  block.receive();
  __syncthreads();
  if (threadIdx.x == 0) word = epoch;
}

}  // namespace

void gather_all(const gather_at_once& what, std::uint64_t* epochs, bool early,
                cudaStream_t stream) {
  gpu::prefer_shared_memory(gather_kernel);
  gpu::start_early(early, gather_kernel, what.movers, sm90::copying_threads, 0, stream,
                   "cannot start a gather", what, epochs);
}

}  // namespace untax

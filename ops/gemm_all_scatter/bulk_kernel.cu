#include "engines/sm90/ptx/cluster.cuh"
#include "ops/gemm_all_scatter/bulk_scatter.cuh"
#include "ops/gemm_all_scatter/scatter_kernels.hpp"
#include "src/symmetric/cuda/launching.hpp"

namespace untax {
namespace {

__global__ void __launch_bounds__(sm90::copying_threads)
    scatter_kernel(const __grid_constant__ scatter_io io, std::uint64_t* epochs) {
  if (io.dry()) return;
  sm90::griddepcontrol_wait();
  sm90::griddepcontrol_launch_dependents();
  std::uint64_t& word = epochs[blockIdx.x];
  const std::uint64_t epoch = word + 1;
  scattering_block(io, epoch).run();
  __syncthreads();
  if (threadIdx.x == 0) word = epoch;
}

}  // namespace

void scatter_all(const scatter_io& io, std::uint64_t* epochs, bool early, cudaStream_t stream) {
  gpu::prefer_shared_memory(scatter_kernel);
  gpu::start_pdl(early, scatter_kernel, io.senders, sm90::copying_threads, stream,
                 "cannot start a scatter", io, epochs);
}

}  // namespace untax

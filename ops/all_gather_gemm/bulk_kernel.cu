#include "engines/sm90/ptx/cluster.cuh"
#include "ops/all_gather_gemm/bulk_gather.cuh"
#include "ops/all_gather_gemm/gather_kernels.hpp"
#include "ops/all_gather_gemm/receiving.cuh"
#include "ops/all_gather_gemm/tma_push.cuh"
#include "src/symmetric/cuda/launching.hpp"

namespace untax {
namespace {

/// By all threads of a block: `run(block, epoch)` between the kernels before and the GEMM.
template <class Run>
__device__ void gather_in_block(std::uint64_t* epochs, const Run& run) {
  sm90::griddepcontrol_wait();
  // Now the GEMM may get ready. Earlier, its blocks would wait in places of what is before.
  sm90::griddepcontrol_launch_dependents();
  const auto block = static_cast<int>(blockIdx.x);
  const std::uint64_t epoch = epochs[block] + 1;
  run(block, epoch);
  __syncthreads();
  if (threadIdx.x == 0) epochs[block] = epoch;
}

__global__ void __launch_bounds__(sm90::copying_threads)
    gather_kernel(const __grid_constant__ bulk_gather what, std::uint64_t* epochs) {
  if (what.dry()) return;
  gather_in_block(epochs, [&](int /*block*/, std::uint64_t epoch) {
    gathering_block block(what, epoch);
    block.send();
    block.receive();
  });
}

__global__ void __launch_bounds__(tma_push::threads)
    gather_tma_kernel(const __grid_constant__ gather_io io,
                      const __grid_constant__ receiving_grid incoming, std::uint64_t* epochs) {
  extern __shared__ __align__(128) std::byte shared[];
  if (io.dry()) return;
  gather_in_block(epochs, [&](int block, std::uint64_t epoch) {
    const bool sent =
        tma_push::run(io, *reinterpret_cast<tma_push::memory*>(shared), block, epoch, block);
    // While the other warp tells of the last TMA tiles.
    if (sent && threadIdx.x < 32)
      await_incoming(incoming, {block, io.senders}, io.moved.run, io.how.sets(), epoch);
  });
}

}  // namespace

void gather_all(const bulk_gather& what, std::uint64_t* epochs, bool early, cudaStream_t stream) {
  gpu::prefer_shared_memory(gather_kernel);
  gpu::start_pdl(early, gather_kernel, what.senders, sm90::copying_threads, stream,
                 "cannot start a gather", what, epochs);
}

void gather_all_by_tma(const gather_io& io, const receiving_grid& incoming, std::uint64_t* epochs,
                       int blocks, bool early, cudaStream_t stream) {
  gpu::prefer_shared_memory(gather_tma_kernel);
  gpu::start_in_pairs(early, gather_tma_kernel, blocks, tma_push::threads, sizeof(tma_push::memory),
                      stream, "cannot start a gather", io, incoming, epochs);
}

}  // namespace untax

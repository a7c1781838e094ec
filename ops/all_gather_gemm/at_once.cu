#include "engines/sm90/ptx/cluster.cuh"
#include "ops/all_gather_gemm/box_sender.cuh"
#include "ops/all_gather_gemm/gather_at_once.cuh"
#include "ops/all_gather_gemm/gather_kernels.hpp"
#include "ops/all_gather_gemm/receiving.cuh"
#include "src/symmetric/cuda/launching.hpp"

namespace untax {
namespace {

/// By all threads of a block: `run(block, epoch)` between the kernels before and the GEMM.
template <class Run>
__device__ void gather_in_block(std::uint64_t* epochs, const Run& run) {
  sm90::await_kernels_before();
  // Now the GEMM may get ready. Earlier, its blocks would wait in places of what is before.
  sm90::let_next_kernel_start();
  const auto block = static_cast<int>(blockIdx.x);
  const std::uint64_t epoch = epochs[block] + 1;
  run(block, epoch);
  __syncthreads();
  if (threadIdx.x == 0) epochs[block] = epoch;
}

__global__ void __launch_bounds__(sm90::copying_threads)
    gather_kernel(const __grid_constant__ gather_at_once what, std::uint64_t* epochs) {
  if (what.dry()) return;
  gather_in_block(epochs, [&](int /*block*/, std::uint64_t epoch) {
    gathering_block block(what, epoch);
    block.send();
    block.receive();
  });
}

__global__ void __launch_bounds__(box_sender::threads)
    gather_boxes_kernel(const __grid_constant__ gather_traffic traffic,
                        const __grid_constant__ receiving_grid incoming, std::uint64_t* epochs) {
  extern __shared__ __align__(128) std::byte shared[];
  if (traffic.dry()) return;
  gather_in_block(epochs, [&](int block, std::uint64_t epoch) {
    const bool sent = box_sender::run(traffic, *reinterpret_cast<box_sender::memory*>(shared),
                                      block, epoch, block);
    // While the other warp tells of the last boxes.
    if (sent && threadIdx.x < 32)
      await_incoming(incoming, {block, traffic.movers}, traffic.moved.run, traffic.how.sets(),
                     epoch);
  });
}

}  // namespace

void gather_all(const gather_at_once& what, std::uint64_t* epochs, bool early,
                cudaStream_t stream) {
  gpu::prefer_shared_memory(gather_kernel);
  gpu::start_early(early, gather_kernel, what.movers, sm90::copying_threads, stream,
                   "cannot start a gather", what, epochs);
}

void gather_all_in_boxes(const gather_traffic& traffic, const receiving_grid& incoming,
                         std::uint64_t* epochs, int blocks, bool early, cudaStream_t stream) {
  gpu::prefer_shared_memory(gather_boxes_kernel);
  gpu::start_in_pairs(early, gather_boxes_kernel, blocks, box_sender::threads,
                      sizeof(box_sender::memory), stream, "cannot start a gather", traffic,
                      incoming, epochs);
}

}  // namespace untax

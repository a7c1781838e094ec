#include "engines/gpu/comm/bulk_gather.cuh"
#include "engines/gpu/comm/gather_kernels.hpp"
#include "src/symmetric/cuda/launching.hpp"

namespace untax {
namespace {

__global__ void __launch_bounds__(gpu::copying_threads)
    gather_kernel(const __grid_constant__ bulk_gather what, std::uint64_t* epochs) {
  if (what.dry()) return;
  gather_in_block(epochs, [&](int /*block*/, std::uint64_t epoch) {
    gathering_block block(what, epoch);
    block.send();
    block.receive();
  });
}

}  // namespace

void gather_all(const bulk_gather& what, std::uint64_t* epochs, bool early, cudaStream_t stream) {
  gpu::prefer_shared_memory(gather_kernel);
  gpu::start_pdl(early, gather_kernel, what.senders, gpu::copying_threads, stream,
                 "cannot start a gather", what, epochs);
}

}  // namespace untax

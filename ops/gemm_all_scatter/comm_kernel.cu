#include "ops/gemm_all_scatter/output_channel.cuh"
#include "ops/gemm_all_scatter/scatter_kernels.hpp"
#include "ops/gemm_all_scatter/tile_sender.cuh"
#include "src/symmetric/cuda/launching.hpp"

namespace untax {
namespace {

/// One warp of a block issues TMA copies.
__global__ void __launch_bounds__(32)
    move_kernel(const __grid_constant__ scatter_io io, std::uint64_t* epochs) {
  extern __shared__ __align__(128) std::byte shared[];
  if (io.dry()) return;
  const auto me = static_cast<int>(blockIdx.x);
  const std::uint64_t epoch = epochs[me] + 1;
  // Blocks of the GEMM beside it have the first slots.
  tile_sender::run(io, *reinterpret_cast<tile_sender::memory*>(shared), me, epoch,
                   io.multiplying + me);
  if (threadIdx.x == 0) epochs[me] = epoch;
}

__global__ void __launch_bounds__(32)
    meet_kernel(const __grid_constant__ scatter_io io, std::uint64_t* word, bool opens) {
  if (io.dry()) return;
  const std::uint64_t epoch = *word + 1;
  const output_channel all(io, 0, epoch, 0);
  if (opens) {
    all.open();
    (void)all.reserve();
  } else {
    (void)all.close();
  }
  if (threadIdx.x == 0) *word = epoch;
}

void meet(const scatter_io& io, std::uint64_t* epoch, bool opens, cudaStream_t stream) {
  meet_kernel<<<1, 32, 0, stream>>>(io, epoch, opens);
  gpu::require(cudaGetLastError(), "cannot start a meeting of ranks");
}

}  // namespace

void move_scattered(const scatter_io& io, std::uint64_t* epochs, int blocks, cudaStream_t stream) {
  gpu::start_in_pairs(false, move_kernel, blocks, 32, sizeof(tile_sender::memory), stream,
                      "cannot start a scatter", io, epochs);
}

void open_scattered(const scatter_io& io, std::uint64_t* epoch, cudaStream_t stream) {
  meet(io, epoch, true, stream);
}
void close_scattered(const scatter_io& io, std::uint64_t* epoch, cudaStream_t stream) {
  meet(io, epoch, false, stream);
}

}  // namespace untax

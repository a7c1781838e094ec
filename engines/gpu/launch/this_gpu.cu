#include "engines/gpu/launch/this_gpu.hpp"

#include <cuda_runtime_api.h>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "src/symmetric/cuda/driver.hpp"
#include "src/symmetric/cuda/stream.hpp"
#include "src/symmetric/queues.hpp"

namespace untax::gpu {
namespace {

int attribute_of(int device, cudaDeviceAttr which) {
  int value = 0;
  gpu::require(cudaDeviceGetAttribute(&value, which, device), "cannot ask what a device is");
  return value;
}

}  // namespace

int attribute_here(cudaDeviceAttr which) {
  int device = 0;
  gpu::require(cudaGetDevice(&device), "there is no device for a kernel");
  return attribute_of(device, which);
}

int num_sms_of(const world& w) {
  return part_of_gpu(attribute_of(w.device(), cudaDevAttrMultiProcessorCount), w.ranks_per_gpu());
}

scratch_memory::~scratch_memory() { cudaFree(data_); }

void* scratch_memory::allocate(std::size_t bytes, const char* owner, int value) {
  const cudaError_t result = cudaMalloc(&data_, bytes);
  if (result == cudaErrorMemoryAllocation && cudaGetLastError() == result)
    throw error(errc::out_of_memory,
                fmt::format("{} needs {} bytes of scratch memory, and the GPU has no room for them",
                            owner, bytes));
  gpu::require(result, "cannot allocate scratch memory");
  gpu::require(cudaMemset(data_, value, bytes), "cannot clear scratch memory");
  // Waits for the default stream alone: kernels of ranks that share the GPU may wait for this rank.
  gpu::require(cudaStreamSynchronize(cudaStreamLegacy), "cannot clear scratch memory");
  return data_;
}

void require_queues(const world& w) {
  const int ranks = w.ranks_per_gpu();
  if (ranks == 1 || gpu::shared_streams(w.device()) <= most_streams(ranks)) return;
  throw error(errc::unsupported,
              fmt::format("rank {}: {} ranks share GPU {} and have {} streams of untax there; more "
                          "than {} do not find a queue of their own among the {} of a GPU, and "
                          "kernels that wait for each other would stand in one: let fewer ranks "
                          "share it, and run operators from the thread that made them",
                          w.rank(), ranks, w.device(), gpu::shared_streams(w.device()),
                          most_streams(ranks), most_queues));
}

bool kernels_ended(const world& w) noexcept {
  // After an exception, kernels of this rank may wait for peers that wait for this rank. (Memory
  // that is not symmetric is freed all the same, which may block until these waits time out.)
  return cudaSetDevice(w.device()) == cudaSuccess && !w.unwinding() &&
         cudaDeviceSynchronize() == cudaSuccess && !w.stopped();
}

void require_own_gpu(const world& w, std::string_view what) {
  if (w.ranks_per_gpu() == 1) return;
  throw error(errc::unsupported,
              fmt::format("rank {}: {} take GPUs of their own; here {} ranks share one", w.rank(),
                          what, w.ranks_per_gpu()));
}

void require_stream(const world& w, cudaStream_t stream) {
  if (stream == cudaStreamLegacy)
    require_own_gpu(w, "runs on the default stream, rather than one of the rank's or none,");
  if (w.ranks_per_gpu() > 1 && captures(stream)) require_own_gpu(w, "graphs");
}

}  // namespace untax::gpu

#include "engines/sm90/processors.hpp"

#include <cuda_runtime_api.h>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "src/symmetric/cuda/driver.hpp"
#include "src/symmetric/cuda/stream.hpp"

namespace untax::sm90 {
namespace {

int processors_on(int device) {
  int value = 0;
  gpu::require(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, device),
               "cannot ask for the number of multiprocessors");
  return value;
}

}  // namespace

int processors_here() {
  int device = 0;
  gpu::require(cudaGetDevice(&device), "there is no device for a kernel");
  return processors_on(device);
}

int processors_of(const world& w) {
  const int all = processors_on(w.device());
  return w.ranks_per_gpu() == 1 ? all : all / w.ranks_per_gpu() / 2 * 2;
}

bool ends_with_others(const world& w) noexcept {
  // Kernels of a rank that leaves with an exception may wait for peers that wait for this rank.
  // (Memory that is not symmetric is freed all the same, which may wait for them up to the limit.)
  return !w.unwinding() && cudaDeviceSynchronize() == cudaSuccess && !w.stopped();
}

void require_own_gpu(const world& w, pattern how) {
  if (how != pattern::copy_engine || w.ranks_per_gpu() == 1) return;
  throw error(errc::unsupported,
              fmt::format("rank {}: copy_engine takes GPUs of their own; here {} ranks share one",
                          w.rank(), w.ranks_per_gpu()));
}

void require_no_graph(const world& w, cudaStream_t stream) {
  if (w.ranks_per_gpu() == 1 || !gpu::captures(stream)) return;
  throw error(errc::unsupported,
              fmt::format("rank {}: graphs take GPUs of their own; here {} ranks share one",
                          w.rank(), w.ranks_per_gpu()));
}

}  // namespace untax::sm90

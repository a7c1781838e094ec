#include "engines/bulk/scratch.hpp"

#include <cuda_runtime_api.h>

#include <utility>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "src/symmetric/cuda/driver.hpp"

namespace untax::bulk {

scratch::scratch(std::size_t bytes) {
  void* address = nullptr;
  const cudaError_t result = cudaMalloc(&address, bytes == 0 ? 1 : bytes);
  if (result == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    std::size_t free = 0;
    std::size_t total = 0;
    (void)cudaMemGetInfo(&free, &total);
    throw error(errc::out_of_memory,
                fmt::format("the bulk engine needs {} bytes of GPU memory, and {} of {} are free",
                            bytes, free, total));
  }
  gpu::require(result, "cannot allocate memory of the bulk engine");
  data_ = static_cast<std::byte*>(address);
}
scratch::scratch(scratch&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
scratch& scratch::operator=(scratch&& other) noexcept {
  std::swap(data_, other.data_);
  return *this;
}
scratch::~scratch() { cudaFree(data_); }

void copy_bytes(void* to, const void* from, std::size_t bytes, stream_ref stream) {
  if (bytes == 0) return;
  gpu::require(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice,
                               static_cast<cudaStream_t>(stream.handle)),
               "cannot copy in GPU memory");
}

void copy_and_wait(void* to, const void* from, std::size_t bytes) {
  gpu::require(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, cudaStreamPerThread),
               "cannot copy");
  gpu::require(cudaStreamSynchronize(cudaStreamPerThread), "cannot copy");
}

}  // namespace untax::bulk

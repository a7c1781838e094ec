#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "src/symmetric/cuda/driver.hpp"

namespace untax::sparse {

/// So many elements in memory of the current device, of which nothing is set. It is taken and given
/// back in the order of a stream, which has to outlive it: what the stream was asked before may
/// still use it.
template <class T>
class device_array {
 public:
  device_array() noexcept = default;
  /// Throws `out_of_memory`.
  device_array(std::int64_t count, cudaStream_t stream) : stream_(stream) {
    if (count == 0) return;
    void* data = nullptr;
    const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(T);
    if (cudaMallocAsync(&data, bytes, stream) != cudaSuccess) {
      cudaGetLastError();
      throw error(errc::out_of_memory,
                  fmt::format("the GPU has no {} bytes for a sparse matrix", bytes));
    }
    data_ = static_cast<T*>(data);
  }
  device_array(device_array&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), stream_(other.stream_) {}
  device_array& operator=(device_array&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(stream_, other.stream_);
    return *this;
  }
  ~device_array() {
    if (data_ != nullptr) cudaFreeAsync(data_, stream_);
  }

  [[nodiscard]] T* data() const noexcept { return data_; }
  /// One of them, on the host. Waits for the stream.
  [[nodiscard]] T at(std::int64_t index, cudaStream_t stream) const {
    T found{};
    gpu::require(cudaMemcpyAsync(&found, data_ + index, sizeof(T), cudaMemcpyDeviceToHost, stream),
                 "cannot read a number back");
    gpu::require(cudaStreamSynchronize(stream), "a sparse matrix cannot be converted");
    return found;
  }

 private:
  T* data_ = nullptr;
  cudaStream_t stream_ = nullptr;
};

/// Carries out a function of CUB, which takes scratch memory: `call(scratch, bytes)` is asked
/// twice.
template <class Call>
void with_scratch(cudaStream_t stream, const Call& call) {
  std::size_t bytes = 0;
  gpu::require(call(nullptr, bytes), "cannot ask for scratch memory");
  // Never empty, since without memory CUB takes the call for a question.
  void* scratch = nullptr;
  gpu::require(cudaMallocAsync(&scratch, bytes > 0 ? bytes : 1, stream), "no scratch memory");
  const cudaError_t done = call(scratch, bytes);
  cudaFreeAsync(scratch, stream);
  gpu::require(done, "a sparse matrix cannot be converted");
}

/// Blocks for so many threads; throws `unsupported` if a grid does not have them.
[[nodiscard]] inline unsigned blocks_for(std::int64_t threads, int block) {
  const std::int64_t blocks = (threads + block - 1) / block;
  if (blocks <= 0x7fffffff) return static_cast<unsigned>(blocks);
  throw error(errc::unsupported,
              fmt::format("this way takes {} blocks of a GPU; a grid has 2147483647", blocks));
}

}  // namespace untax::sparse

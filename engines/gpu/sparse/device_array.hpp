#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "src/symmetric/cuda/driver.hpp"

namespace untax::sparse {

/// `count` uninitialised elements in memory of the current device. They are allocated and freed in
/// the order of `stream`, since work that was enqueued before may still use them. The stream has to
/// outlive the array.
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
  /// Copies one element to the host. Synchronises the stream.
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

/// Runs a function of CUB that needs scratch memory: calls `call(scratch, bytes)` once to query the
/// size and once to execute.
template <class Call>
void with_scratch(cudaStream_t stream, const Call& call) {
  std::size_t bytes = 0;
  gpu::require(call(nullptr, bytes), "cannot ask for scratch memory");
  // At least one byte: with a null pointer CUB treats the call as a query.
  void* scratch = nullptr;
  gpu::require(cudaMallocAsync(&scratch, bytes > 0 ? bytes : 1, stream), "no scratch memory");
  const cudaError_t done = call(scratch, bytes);
  cudaFreeAsync(scratch, stream);
  gpu::require(done, "a sparse matrix cannot be converted");
}

/// Blocks of `block` threads for `threads` threads. Throws `unsupported` above the grid limit.
[[nodiscard]] inline unsigned blocks_for(std::int64_t threads, int block) {
  const std::int64_t blocks = (threads + block - 1) / block;
  if (blocks <= 0x7fffffff) return static_cast<unsigned>(blocks);
  throw error(errc::unsupported,
              fmt::format("this way takes {} blocks of a GPU; a grid has 2147483647", blocks));
}

}  // namespace untax::sparse

#pragma once

#include <cuda_runtime_api.h>

#include "src/symmetric/cuda/driver.hpp"

namespace untax {

/// A stream for what runs beside a caller's stream. What it does between `fork` and `join` begins
/// after what the caller's stream has before, and is part of its capture, if there is one.
class side_stream {
 public:
  side_stream() {
    gpu::require(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "no stream");
    gpu::require(cudaEventCreateWithFlags(&forked_, cudaEventDisableTiming), "no event");
    gpu::require(cudaEventCreateWithFlags(&joined_, cudaEventDisableTiming), "no event");
  }
  side_stream(const side_stream&) = delete;
  side_stream& operator=(const side_stream&) = delete;
  ~side_stream() {
    cudaEventDestroy(joined_);
    cudaEventDestroy(forked_);
    cudaStreamDestroy(stream_);
  }

  [[nodiscard]] cudaStream_t stream() const noexcept { return stream_; }
  void fork(cudaStream_t from) const {
    gpu::require(cudaEventRecord(forked_, from), "cannot leave a stream");
    gpu::require(cudaStreamWaitEvent(stream_, forked_, 0), "cannot leave a stream");
  }
  void join(cudaStream_t into) const {
    gpu::require(cudaEventRecord(joined_, stream_), "cannot come back to a stream");
    gpu::require(cudaStreamWaitEvent(into, joined_, 0), "cannot come back to a stream");
  }

 private:
  cudaStream_t stream_ = nullptr;
  cudaEvent_t forked_ = nullptr;
  cudaEvent_t joined_ = nullptr;
};

}  // namespace untax

#pragma once

#include <cuda_runtime_api.h>

#include <memory>

#include "src/symmetric/cuda/driver.hpp"
#include "src/symmetric/cuda/shared_streams.hpp"

namespace untax::gpu {

/// Whether what is asked of the stream becomes part of a graph. The default stream is in none.
[[nodiscard]] inline bool captures(cudaStream_t stream) {
  if (stream == nullptr || stream == cudaStreamLegacy) return false;
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  require(cudaStreamIsCapturing(stream, &status), "cannot ask about a capture");
  return status != cudaStreamCaptureStatusNone;
}

/// A stream of the current device that waits for no other, as the legacy default stream would.
class stream {
 public:
  /// Throws `internal` if there is none to be had.
  explicit stream(stream_use use = stream_use::own) : stream_(stream_for(use)) {}
  stream(const stream&) = delete;
  stream& operator=(const stream&) = delete;
  ~stream() = default;

  [[nodiscard]] cudaStream_t get() const noexcept { return stream_.get(); }

 private:
  std::shared_ptr<CUstream_st> stream_;
};

/// Has what is asked of `stream` from now on begin behind what the default stream of the current
/// device has. Throws `internal`.
inline void follow_default(cudaStream_t stream) {
  cudaEvent_t there = nullptr;
  require(cudaEventCreateWithFlags(&there, cudaEventDisableTiming), "no event");
  const std::unique_ptr<CUevent_st, decltype(&cudaEventDestroy)> kept(there, cudaEventDestroy);
  require(cudaEventRecord(there, cudaStreamLegacy), "cannot follow the default stream");
  require(cudaStreamWaitEvent(stream, there, 0), "cannot follow the default stream");
}

/// A stream for what runs beside a caller's stream. What it does between `fork` and `join` begins
/// after what the caller's stream has before, and is part of its capture, if there is one.
class side_stream {
 public:
  side_stream() {
    require(cudaEventCreateWithFlags(&forked_, cudaEventDisableTiming), "no event");
    require(cudaEventCreateWithFlags(&joined_, cudaEventDisableTiming), "no event");
  }
  side_stream(const side_stream&) = delete;
  side_stream& operator=(const side_stream&) = delete;
  ~side_stream() {
    cudaEventDestroy(joined_);
    cudaEventDestroy(forked_);
  }

  [[nodiscard]] cudaStream_t get() const noexcept { return stream_.get(); }
  void fork(cudaStream_t from) const {
    require(cudaEventRecord(forked_, from), "cannot leave a stream");
    require(cudaStreamWaitEvent(get(), forked_, 0), "cannot leave a stream");
  }
  void join(cudaStream_t into) const {
    require(cudaEventRecord(joined_, get()), "cannot come back to a stream");
    require(cudaStreamWaitEvent(into, joined_, 0), "cannot come back to a stream");
  }

 private:
  stream stream_{stream_use::side};
  cudaEvent_t forked_ = nullptr;
  cudaEvent_t joined_ = nullptr;
};

}  // namespace untax::gpu

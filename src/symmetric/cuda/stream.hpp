#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>

#include "src/symmetric/cuda/driver.hpp"
#include "src/symmetric/cuda/shared_streams.hpp"

namespace untax::gpu {

/// Whether the stream is being captured into a graph. The default stream never is.
[[nodiscard]] inline bool captures(cudaStream_t stream) {
  if (stream == nullptr || stream == cudaStreamLegacy) return false;
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  require(cudaStreamIsCapturing(stream, &status), "cannot read whether a stream is captured");
  return status != cudaStreamCaptureStatusNone;
}

/// A stream of the current device that does not synchronise with the legacy default stream.
class stream {
 public:
  /// Throws `internal` if none can be created.
  explicit stream(stream_use use = stream_use::own) : stream_(stream_for(use)) {}
  stream(const stream&) = delete;
  stream& operator=(const stream&) = delete;
  ~stream() = default;

  [[nodiscard]] cudaStream_t get() const noexcept { return stream_.get(); }

 private:
  std::shared_ptr<CUstream_st> stream_;
};

/// An event of the current device.
class event {
 public:
  /// Throws `internal` if none can be created.
  explicit event(unsigned flags = cudaEventDisableTiming) {
    require(cudaEventCreateWithFlags(&event_, flags), "no event");
  }
  event(const event&) = delete;
  event& operator=(const event&) = delete;
  ~event() { cudaEventDestroy(event_); }

  [[nodiscard]] cudaEvent_t get() const noexcept { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

/// Makes work that is enqueued on `stream` from now on wait for the present work of the default
/// stream of the current device. Throws `internal`.
inline void follow_default(cudaStream_t stream) {
  const event there;
  require(cudaEventRecord(there.get(), cudaStreamLegacy),
          "cannot make a stream wait for the default stream");
  require(cudaStreamWaitEvent(stream, there.get(), 0),
          "cannot make a stream wait for the default stream");
}

/// Copies `bytes` of the host to memory of the current device, for kernels of any stream: returns
/// when the bytes have arrived. Throws `internal`, with `problem`.
inline void upload(void* to, const void* from, std::size_t bytes, const char* problem) {
  require(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice), problem);
  // Bytes from pageable memory may only have been staged, and non-blocking streams would not wait
  // for them.
  require(cudaStreamSynchronize(cudaStreamLegacy), problem);
}

/// A stream for work beside a caller's stream. Work between `fork` and `join` begins after the work
/// that the caller's stream has at `fork`, and is part of its capture, if there is one.
class side_stream {
 public:
  [[nodiscard]] cudaStream_t get() const noexcept { return stream_.get(); }
  void fork(cudaStream_t from) const {
    require(cudaEventRecord(forked_.get(), from), "cannot fork a side stream");
    require(cudaStreamWaitEvent(get(), forked_.get(), 0), "cannot fork a side stream");
  }
  void join(cudaStream_t into) const {
    require(cudaEventRecord(joined_.get(), get()), "cannot join a side stream");
    require(cudaStreamWaitEvent(into, joined_.get(), 0), "cannot join a side stream");
  }

 private:
  stream stream_{stream_use::side};
  event forked_;
  event joined_;
};

}  // namespace untax::gpu

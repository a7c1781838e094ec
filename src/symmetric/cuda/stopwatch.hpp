#pragma once

#include "src/symmetric/cuda/stream.hpp"

namespace untax::gpu {

/// A stream of the current device, with two events between which it is timed.
class stopwatch {
 public:
  [[nodiscard]] cudaStream_t stream() const noexcept { return stream_.get(); }
  /// Starts the clock: work that is enqueued from now on counts.
  void start() const { require(cudaEventRecord(begin_.get(), stream()), "cannot time a stream"); }
  /// The seconds that the stream took for the work since `start`. Waits for this work. Throws
  /// `internal` if it failed.
  [[nodiscard]] double stop() const {
    require(cudaEventRecord(end_.get(), stream()), "cannot time a stream");
    require(cudaEventSynchronize(end_.get()), "a kernel that was timed failed");
    float milliseconds = 0;
    require(cudaEventElapsedTime(&milliseconds, begin_.get(), end_.get()), "cannot time a stream");
    return 1e-3 * static_cast<double>(milliseconds);
  }

 private:
  gpu::stream stream_;
  event begin_{cudaEventDefault};
  event end_{cudaEventDefault};
};

}  // namespace untax::gpu

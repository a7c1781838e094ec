#pragma once

#include "src/symmetric/cuda/stream.hpp"

namespace untax::gpu {

/// A stream of the current device, with two events between which it is timed.
class stopwatch {
 public:
  /// Throws `internal`.
  stopwatch() {
    require(cudaEventCreate(&begin_), "no event");
    require(cudaEventCreate(&end_), "no event");
  }
  stopwatch(const stopwatch&) = delete;
  stopwatch& operator=(const stopwatch&) = delete;
  ~stopwatch() {
    cudaEventDestroy(end_);
    cudaEventDestroy(begin_);
  }

  [[nodiscard]] cudaStream_t stream() const noexcept { return stream_.get(); }
  /// Starts the clock: work that is enqueued from now on counts.
  void start() const { require(cudaEventRecord(begin_, stream()), "cannot time a stream"); }
  /// The seconds that the stream took for the work since `start`. Waits for this work. Throws
  /// `internal` if it failed.
  [[nodiscard]] double stop() const {
    require(cudaEventRecord(end_, stream()), "cannot time a stream");
    require(cudaEventSynchronize(end_), "a kernel that was timed failed");
    float milliseconds = 0;
    require(cudaEventElapsedTime(&milliseconds, begin_, end_), "cannot time a stream");
    return 1e-3 * static_cast<double>(milliseconds);
  }

 private:
  gpu::stream stream_;
  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
};

}  // namespace untax::gpu

#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <utility>

namespace untax::gpu {

/// A CUDA graph: work that was recorded once and can be launched again as a whole.
class graph {
 public:
  graph() noexcept = default;
  /// Records the work that `launch` enqueues on `on` and on streams forked from it, and prepares
  /// the graph for launches. Other threads may call CUDA meanwhile. Throws `internal`, or the
  /// exception of `launch`; the capture has ended then.
  graph(cudaStream_t on, const std::function<void()>& launch);
  graph(graph&& other) noexcept : ready_(std::exchange(other.ready_, nullptr)) {}
  graph& operator=(graph&& other) noexcept {
    std::swap(ready_, other.ready_);
    return *this;
  }
  ~graph();

  void launch(cudaStream_t on) const;

 private:
  cudaGraphExec_t ready_ = nullptr;
};

}  // namespace untax::gpu

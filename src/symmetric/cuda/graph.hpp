#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <utility>

namespace untax::gpu {

/// What a stream was asked once, to be asked again as a whole.
class graph {
 public:
  graph() noexcept = default;
  /// Records what `launch` asks of `on`, and what it forks from it, and makes it ready to be
  /// launched. Other threads may go on meanwhile. Throws `internal`, and what `launch` throws; the
  /// capture has ended then.
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

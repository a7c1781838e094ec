#include "src/symmetric/cuda/graph.hpp"

#include "src/symmetric/cuda/driver.hpp"

namespace untax::gpu {
namespace {

/// Ends a capture and returns its graph; null if the capture failed.
cudaGraph_t end_capture(cudaStream_t on) noexcept {
  cudaGraph_t recorded = nullptr;
  if (cudaStreamEndCapture(on, &recorded) != cudaSuccess) cudaGetLastError();
  return recorded;
}

}  // namespace

graph::graph(cudaStream_t on, const std::function<void()>& launch) : graph() {
  require(cudaStreamBeginCapture(on, cudaStreamCaptureModeThreadLocal), "cannot begin a capture");
  try {
    launch();
  } catch (...) {
    if (cudaGraph_t part = end_capture(on)) cudaGraphDestroy(part);
    throw;
  }
  cudaGraph_t recorded = nullptr;
  require(cudaStreamEndCapture(on, &recorded), "cannot end a capture");
  const cudaError_t status = cudaGraphInstantiate(&ready_, recorded, 0);
  cudaGraphDestroy(recorded);
  require(status, "cannot instantiate a graph");
  require(cudaGraphUpload(ready_, on), "cannot upload a graph");
}

graph::~graph() {
  if (ready_ != nullptr) cudaGraphExecDestroy(ready_);
}

void graph::launch(cudaStream_t on) const {
  require(cudaGraphLaunch(ready_, on), "cannot launch a graph");
}

}  // namespace untax::gpu

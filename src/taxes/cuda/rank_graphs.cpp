#include "src/taxes/cuda/rank_graphs.hpp"

#include "src/taxes/cuda/check.hpp"

namespace untax {

rank_graphs::~rank_graphs() {
  for (cudaGraphExec_t graph : graphs_) {
    if (graph != nullptr) cudaGraphExecDestroy(graph);
  }
}

void rank_graphs::capture(int rank, cudaStream_t stream, int times,
                          const std::function<void(int i)>& launch) {
  cudaGraph_t graph = nullptr;
  check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capturing");
  for (int i = 0; i < times; ++i) launch(i);
  check_cuda(cudaStreamEndCapture(stream, &graph), "capturing");
  auto& ready = graphs_[static_cast<std::size_t>(rank)];
  check_cuda(cudaGraphInstantiate(&ready, graph, 0), "making a graph");
  check_cuda(cudaGraphDestroy(graph), "ending a capture");
  check_cuda(cudaGraphUpload(ready, stream), "loading a graph");
}

void rank_graphs::launch(int rank, cudaStream_t stream) const {
  check_cuda(cudaGraphLaunch(graphs_[static_cast<std::size_t>(rank)], stream), "a graph");
}

}  // namespace untax

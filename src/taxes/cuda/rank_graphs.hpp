#pragma once

#include <functional>
#include <vector>

#include "src/symmetric/cuda/graph.hpp"

namespace untax {

/// A CUDA graph for each rank of a team.
class rank_graphs {
 public:
  explicit rank_graphs(int ranks) : graphs_(static_cast<std::size_t>(ranks)) {}

  /// Captures `times` calls of `launch` on the stream of a rank, whose GPU has to be the current
  /// device, and makes the graph ready to launch.
  void capture(int rank, cudaStream_t stream, int times, const std::function<void(int i)>& launch);
  void launch(int rank, cudaStream_t stream) const;

 private:
  std::vector<gpu::graph> graphs_;
};

}  // namespace untax

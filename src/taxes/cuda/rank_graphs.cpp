#include "src/taxes/cuda/rank_graphs.hpp"

namespace untax {

void rank_graphs::capture(int rank, cudaStream_t stream, int times,
                          const std::function<void(int i)>& launch) {
  graphs_[static_cast<std::size_t>(rank)] = gpu::graph(stream, [&] {
    for (int i = 0; i < times; ++i) launch(i);
  });
}

void rank_graphs::launch(int rank, cudaStream_t stream) const {
  graphs_[static_cast<std::size_t>(rank)].launch(stream);
}

}  // namespace untax

#include "engines/bulk/quickest.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>

#include "engines/bulk/scratch.hpp"
#include "src/symmetric/cuda/driver.hpp"

namespace untax::bulk {
namespace {

constexpr int rounds = 5;
constexpr int warm_rounds = 2;

/// A stream with a clock.
class timer {
 public:
  timer() {
    gpu::require(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "no stream");
    gpu::require(cudaEventCreate(&begin_), "no event");
    gpu::require(cudaEventCreate(&end_), "no event");
  }
  timer(const timer&) = delete;
  timer& operator=(const timer&) = delete;
  ~timer() {
    cudaEventDestroy(begin_);
    cudaEventDestroy(end_);
    cudaStreamDestroy(stream_);
  }

  template <class Run>
  double seconds(Run&& run) {
    gpu::require(cudaEventRecord(begin_, stream_), "recording an event");
    run(stream_ref(stream_));
    gpu::require(cudaEventRecord(end_, stream_), "recording an event");
    gpu::require(cudaStreamSynchronize(stream_), "a kernel that was measured failed");
    float milliseconds = 0;
    gpu::require(cudaEventElapsedTime(&milliseconds, begin_, end_), "reading a clock");
    return 1e-3 * static_cast<double>(milliseconds);
  }

 private:
  cudaStream_t stream_ = nullptr;
  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
};

}  // namespace

std::vector<double> seconds_of(
    int ways, const std::function<void(int way, int round, stream_ref stream)>& run) {
  timer clock;
  std::vector<std::vector<double>> seconds(static_cast<std::size_t>(ways));
  for (int round = -warm_rounds; round < rounds; ++round) {
    for (int way = 0; way < ways; ++way) {
      const double took =
          clock.seconds([&](stream_ref stream) { run(way, round + warm_rounds, stream); });
      if (round >= 0) seconds[static_cast<std::size_t>(way)].push_back(took);
    }
  }
  std::vector<double> medians;
  for (auto& all : seconds) {
    std::nth_element(all.begin(), all.begin() + rounds / 2, all.end());
    medians.push_back(all[rounds / 2]);
  }
  return medians;
}

int least_of(const std::vector<double>& values) noexcept {
  return static_cast<int>(std::min_element(values.begin(), values.end()) - values.begin());
}

std::vector<double> values_of_ranks(world& w, const std::vector<double>& mine) {
  const std::size_t count = mine.size();
  const auto copy = [](double* to, const double* from, std::size_t elements) {
    copy_and_wait(to, from, elements * sizeof(double));
  };
  const auto board =
      w.allocate<double>(count * static_cast<std::size_t>(w.size()), "values of all ranks");
  const std::size_t place = static_cast<std::size_t>(w.rank()) * count;
  for (int peer = 0; peer < w.size(); ++peer) copy(board.at(peer, place), mine.data(), count);
  w.barrier();
  std::vector<double> all(board.size());
  copy(all.data(), board.local(), all.size());
  w.barrier();
  w.free(board);
  return all;
}

std::vector<double> longest_of_ranks(world& w, const std::vector<double>& seconds) {
  const std::size_t count = seconds.size();
  std::vector<double> longest = seconds;
  const std::vector<double> all = values_of_ranks(w, seconds);
  for (std::size_t i = 0; i < all.size(); ++i)
    longest[i % count] = std::max(longest[i % count], all[i]);
  return longest;
}

}  // namespace untax::bulk

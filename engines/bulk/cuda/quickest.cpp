#include "engines/bulk/quickest.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <utility>

#include "engines/bulk/scratch.hpp"
#include "src/symmetric/cuda/graph.hpp"
#include "src/symmetric/cuda/stopwatch.hpp"

namespace untax::bulk {
namespace {

constexpr int rounds = 5;
constexpr int warm_rounds = 2;

constexpr double seconds_of_graph = 4e-4;
constexpr int most_runs = 20;
constexpr double seconds_of_warming = 1.5e-3;
constexpr int most_warm_graphs = 20;

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

std::vector<double> seconds_of(
    int ways, const std::function<void(int way, int round, stream_ref stream)>& run) {
  const gpu::stopwatch clock;
  std::vector<std::vector<double>> seconds(static_cast<std::size_t>(ways));
  for (int round = -warm_rounds; round < rounds; ++round) {
    for (int way = 0; way < ways; ++way) {
      clock.start();
      run(way, round + warm_rounds, stream_ref(clock.stream()));
      const double took = clock.stop();
      if (round >= 0) seconds[static_cast<std::size_t>(way)].push_back(took);
    }
  }
  std::vector<double> medians;
  for (const auto& times : seconds) medians.push_back(median_of(times));
  return medians;
}

int runs_in_graph(double seconds) noexcept {
  return std::clamp(static_cast<int>(seconds_of_graph / seconds) + 1, 1, most_runs);
}

double seconds_in_graph(world& w, const std::function<void(int run, stream_ref stream)>& launch) {
  const gpu::stopwatch clock;
  const stream_ref stream(clock.stream());
  const auto agreed = [&](double mine) { return longest_of_ranks(w, {mine}).front(); };
  const auto alone = [&] {
    clock.start();
    launch(0, stream);
    return agreed(clock.stop());
  };
  // An allocation may wait for kernels of peers that wait for this rank. Until this barrier, ranks
  // may still allocate memory for the runs below; graphs allocate, too.
  w.barrier();
  (void)alone();  // runs one-time initialisation
  const double roughly = alone();
  const int runs = runs_in_graph(roughly);
  const gpu::graph all(clock.stream(), [&] {
    for (int run = runs - 1; run >= 0; --run) launch(run, stream);
  });
  gpu::require(cudaStreamSynchronize(clock.stream()), "cannot upload a graph");
  w.barrier();
  const int warm =
      std::clamp(static_cast<int>(seconds_of_warming / (runs * roughly)), 1, most_warm_graphs);
  for (int i = 0; i < warm; ++i) all.launch(clock.stream());
  std::vector<double> seconds;
  for (int round = 0; round < rounds; ++round) {
    all.launch(clock.stream());  // ranks begin this run at different times, but end it together
    clock.start();
    all.launch(clock.stream());
    seconds.push_back(clock.stop() / runs);
  }
  w.check();
  return agreed(median_of(std::move(seconds)));
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
      w.allocate_owned<double>(count * static_cast<std::size_t>(w.size()), "values of all ranks");
  const std::size_t place = static_cast<std::size_t>(w.rank()) * count;
  for (int peer = 0; peer < w.size(); ++peer) copy(board->at(peer, place), mine.data(), count);
  w.barrier();
  std::vector<double> all(board->size());
  copy(all.data(), board->local(), all.size());
  return all;
}

std::vector<double> longest_of_ranks(world& w, const std::vector<double>& seconds) {
  const std::size_t count = seconds.size();
  std::vector<double> longest = seconds;
  const std::vector<double> times_of_ranks = values_of_ranks(w, seconds);
  for (std::size_t i = 0; i < times_of_ranks.size(); ++i)
    longest[i % count] = std::max(longest[i % count], times_of_ranks[i]);
  return longest;
}

}  // namespace untax::bulk

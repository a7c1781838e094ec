#include "src/taxes/cuda/benchmark_case.hpp"

#include <algorithm>

#include <untax/taxes/timing.hpp>

namespace untax {
namespace {

constexpr int warmups = 2;

}  // namespace

void benchmark_case::launch(int times, int rank, cudaStream_t stream) const {
  if (graphs) return graphs->launch(rank, stream);
  for (int i = times - 1; i >= 0; --i) run(rank, i, stream);
}

spread benchmark_case::time() const { return spread_of(seconds); }

void capture(gpu_team& team, const std::vector<benchmark_case*>& cases, int times) {
  for (benchmark_case* c : cases) {
    if (c->eager) continue;
    // One run before the capture does the work that only a first run does.
    team.together([&](world& w) { c->run(w.rank(), 0, team.stream_of(w.rank())); });
    team.finish();
    c->graphs.emplace(team.size());
    team.together([&](world& w) {
      cudaStream_t stream = team.stream_of(w.rank());
      c->graphs->capture(w.rank(), stream, times,
                         [&](int i) { c->run(w.rank(), times - 1 - i, stream); });
    });
  }
}

void time_in_turn(gpu_team& team, const std::vector<benchmark_case*>& cases, int times,
                  int repeats) {
  std::vector<int> everybody;
  for (int rank = 0; rank < team.size(); ++rank) everybody.push_back(rank);
  for (int repeat = -warmups; repeat < repeats; ++repeat) {
    for (benchmark_case* c : cases) {
      const auto start = [&](int rank, cudaStream_t stream) { c->launch(times, rank, stream); };
      const double longest = c->eager ? team.timed_eagerly(start) : team.timed(everybody, start);
      if (repeat >= 0) c->seconds.push_back(longest / times);
    }
  }
}

}  // namespace untax

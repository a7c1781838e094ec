#include <untax/taxes/timing.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <untax/memory/host_memory.hpp>

#include "engines/bulk/quickest.hpp"

namespace untax {
namespace {

double percentile(const std::vector<double>& sorted, double p) {
  const double position = p * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(std::floor(position));
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (position - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

/// One run in a world of GPUs, whose heaps the host cannot write.
double timed_run_on_devices(world& w, const std::function<void()>& run) {
  w.barrier();
  const auto begin = static_cast<double>(host_memory::now());
  run();
  const auto end = static_cast<double>(host_memory::now());
  // The maximum of the negated begins gives the earliest begin.
  const std::vector<double> latest = bulk::longest_of_ranks(w, {end, -begin});
  return (latest[0] + latest[1]) * 1e-9;
}

struct interval {
  std::uint64_t begin;
  std::uint64_t end;
};

/// One run of all ranks of the host. Each rank sends its begin and end to all ranks; the barrier
/// makes them visible.
double timed_run(world& w, const std::function<void()>& run, const symmetric<interval>& intervals) {
  w.barrier();
  interval mine{host_memory::now(), 0};
  run();
  mine.end = host_memory::now();
  for (int peer = 0; peer < w.size(); ++peer)
    *intervals.at(peer, static_cast<std::size_t>(w.rank())) = mine;
  w.barrier();
  interval span = *intervals.local();
  for (int rank = 1; rank < w.size(); ++rank) {
    const interval& rank_interval = *intervals.local(static_cast<std::size_t>(rank));
    span = {std::min(span.begin, rank_interval.begin), std::max(span.end, rank_interval.end)};
  }
  return static_cast<double>(span.end - span.begin) * 1e-9;
}

}  // namespace

spread spread_of(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  return {percentile(seconds, 0.5), percentile(seconds, 0.1), percentile(seconds, 0.9)};
}

std::vector<std::vector<double>> seconds_interleaved(world& w, const timed_variants& variants) {
  const bool on_devices = w.memory() == memory_kind::cuda;
  const auto intervals = w.allocate<interval>(static_cast<std::size_t>(w.size()), "timing");
  std::vector<std::vector<double>> seconds(variants.run.size());
  for (int repeat = -variants.warmups; repeat < variants.repeats; ++repeat) {
    for (std::size_t i = 0; i < variants.run.size(); ++i) {
      const double time = on_devices ? timed_run_on_devices(w, variants.run[i])
                                     : timed_run(w, variants.run[i], intervals);
      if (repeat >= 0) seconds[i].push_back(time);
      if (variants.after_run) variants.after_run();
    }
  }
  w.barrier();
  w.free(intervals);
  return seconds;
}

std::vector<spread> time_interleaved(world& w, const timed_variants& variants) {
  std::vector<std::vector<double>> seconds = seconds_interleaved(w, variants);
  std::vector<spread> spreads;
  spreads.reserve(seconds.size());
  for (auto& times : seconds) spreads.push_back(spread_of(std::move(times)));
  return spreads;
}

}  // namespace untax

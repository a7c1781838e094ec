#include "bench/suites/rma.hpp"

#include "bench/suites/cuda/rma_parts.hpp"
#include "src/taxes/cuda/gpu_team.cuh"

namespace untax::bench {

rma_report run_rma_suite(const rma_suite_options& options) {
  gpu_team team(options.ranks, rma_heap_bytes);
  rma_report report{team.size(), team.device_name(), measure_latencies(team, options)};
  for (const auto part : {measure_atomics, measure_rates}) {
    for (rma_figure& figure : part(team, options)) report.figures.push_back(std::move(figure));
  }
  return report;
}

int steps_of(const rma_suite_options& options) {
  int ranks = options.ranks;
  if (ranks == 0 && cudaGetDeviceCount(&ranks) != cudaSuccess) ranks = 0;
  return latency_steps(options.repeats) + atomic_steps() + rate_steps(ranks, options.repeats);
}

}  // namespace untax::bench

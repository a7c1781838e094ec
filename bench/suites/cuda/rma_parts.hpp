#pragma once

#include <vector>

#include "bench/suites/rma.hpp"

namespace untax {
class gpu_team;
}

namespace untax::bench {

/// The parts of the rma suite. Each measures its variants in turn and checks the data.
[[nodiscard]] std::vector<rma_figure> measure_rates(gpu_team& team,
                                                    const rma_suite_options& options);
[[nodiscard]] std::vector<rma_figure> measure_latencies(gpu_team& team,
                                                        const rma_suite_options& options);
[[nodiscard]] std::vector<rma_figure> measure_atomics(gpu_team& team,
                                                      const rma_suite_options& options);
/// The number of calls of `progress` by each part.
[[nodiscard]] int atomic_steps();
[[nodiscard]] int rate_steps(int ranks, int repeats);
[[nodiscard]] int latency_steps(int repeats);

/// The memory, in bytes, that the parts need of each rank's heap.
inline constexpr std::size_t rma_heap_bytes = std::size_t{4608} << 20U;

}  // namespace untax::bench

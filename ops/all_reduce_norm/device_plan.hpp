#pragma once

#include <string>
#include <vector>

#include <untax/ops/all_reduce_norm.hpp>

#include "engines/gpu/norm/norm_rows.hpp"

namespace untax {

/// The plan by which a rank sums and normalises rows on its GPU.
struct norm_plan {
  gpu::norm_rows how;
  int blocks = 1;

  /// Blocks, or clusters of blocks that share a row: the checker takes a cluster as one worker.
  [[nodiscard]] int workers() const { return blocks / how.spread; }
  [[nodiscard]] std::string text() const;
  /// The parts of the plan in which all ranks have to agree.
  [[nodiscard]] std::vector<std::string> agreed() const;
};
[[nodiscard]] norm_plan norm_plan_of(const all_reduce_norm_problem& problem, int world, int rank,
                                     int phases, int multiprocessors);

}  // namespace untax

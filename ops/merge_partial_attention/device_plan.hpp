#pragma once

#include <string>
#include <vector>

#include <untax/ops/merge_partial_attention.hpp>

#include "engines/gpu/merge/merge_rows.hpp"

namespace untax {

/// The plan by which a rank merges rows on its GPU.
struct merge_grid {
  gpu::merge_rows how;
  int blocks = 1;

  [[nodiscard]] std::string text() const;
  /// The parts of the plan in which all ranks have to agree.
  [[nodiscard]] std::vector<std::string> agreed() const;
};
/// `blocks`: the number asked for; 0: as many as there is work for, one a multiprocessor at most.
[[nodiscard]] merge_grid merge_grid_of(const merge_partial_attention_problem& problem, int world,
                                       int rank, int blocks, int multiprocessors);

}  // namespace untax

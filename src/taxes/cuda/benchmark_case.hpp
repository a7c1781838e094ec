#pragma once

#include <functional>
#include <optional>
#include <vector>

#include <untax/taxes/report.hpp>

#include "src/taxes/cuda/gpu_team.hpp"
#include "src/taxes/cuda/rank_graphs.hpp"

namespace untax {

/// One of several things that are run in turn.
struct benchmark_case {
  /// Launches run `i` at a rank; those that follow each other may use memory at other places.
  std::function<void(int rank, int i, cudaStream_t stream)> run;
  bool eager = false;  ///< launched one by one, not in a graph
  std::optional<rank_graphs> graphs = std::nullopt;
  std::vector<double> seconds = {};  ///< of one run, each the maximum over the ranks

  /// Launches runs `times` - 1 to 0.
  void launch(int times, int rank, cudaStream_t stream) const;
  [[nodiscard]] spread time() const;
};

/// Makes graphs of `times` runs of all that are not eager, after a run of each alone.
void capture(gpu_team& team, const std::vector<benchmark_case*>& all, int times);

/// Times them in turn (A, B, C, A, B, C, ...), so that whatever else the machine does strikes all
/// of them; adds `repeats` times to each.
void time_in_turn(gpu_team& team, const std::vector<benchmark_case*>& all, int times, int repeats);

}  // namespace untax

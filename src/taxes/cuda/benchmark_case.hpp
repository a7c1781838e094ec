#pragma once

#include <functional>
#include <optional>
#include <vector>

#include <untax/taxes/report.hpp>

#include "src/taxes/cuda/gpu_team.hpp"
#include "src/taxes/cuda/rank_graphs.hpp"

namespace untax {

/// One of several alternatives that are timed in turn.
struct benchmark_case {
  /// Launches run `i` at a rank. Consecutive runs may use memory at different places.
  std::function<void(int rank, int i, cudaStream_t stream)> run;
  bool eager = false;  ///< launched one by one, not in a graph
  std::optional<rank_graphs> graphs = std::nullopt;
  std::vector<double> seconds = {};  ///< per run; the maximum over the ranks

  /// Launches runs `times` - 1 to 0.
  void launch(int times, int rank, cudaStream_t stream) const;
  [[nodiscard]] spread time() const;
};

/// Captures a graph of `times` runs of each case that is not eager, after one run of it.
void capture(gpu_team& team, const std::vector<benchmark_case*>& cases, int times);

/// Times the cases in turn (A, B, C, A, B, C, ...), so that a disturbance affects all of them. Adds
/// `repeats` times to each.
void time_in_turn(gpu_team& team, const std::vector<benchmark_case*>& cases, int times,
                  int repeats);

}  // namespace untax

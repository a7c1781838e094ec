#pragma once

#include <functional>

#include "engines/gpu/gemm/plan.hpp"
#include "engines/timing/workload.hpp"

namespace untax::timing {

/// The clusters of a GEMM kernel, as workers that take the tiles of its schedule.
struct gemm_team {
  gpu::tile_scheduler order;
  double seconds = 0;  ///< of the GEMM alone
  /// Adds what a cluster does before it multiplies. May be empty.
  std::function<void(int cluster)> before;
  /// Adds the waits before k-blocks [begin, end) of a tile are read. May be empty.
  std::function<void(int cluster, int tile, int begin, int end)> needs;
  /// The most k-blocks that are waited for together; 0: all of a tile.
  int portion = 0;
  /// Called after the last k-block of a tile: adds what is done with the tile. May be empty.
  std::function<void(int cluster, int tile)> finished;
  /// Adds what a cluster does after its last tile. May be empty.
  std::function<void(int cluster)> after;
};

/// Seconds that a k-block takes a cluster, if the GEMM alone takes `team.seconds`.
[[nodiscard]] double seconds_of_k_block(const gemm_team& team);

/// Adds a worker for each cluster to a kernel. Each takes its tiles in the order of the schedule,
/// and waits before each portion of k-blocks for what these need.
void add_gemm(workload& work, int kernel, const gemm_team& team);

}  // namespace untax::timing

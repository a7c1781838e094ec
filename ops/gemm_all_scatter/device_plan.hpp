#pragma once

#include <string>
#include <vector>

#include <untax/ops/options.hpp>
#include <untax/ops/problems.hpp>

#include "engines/sm90/gemm/plan.hpp"

namespace untax {

/// What becomes of a finished tile.
enum class scatter_way : std::uint8_t {
  straight,  ///< from shared memory into all copies of C
  flagged,   ///< into the rank's own C, and movers are told, who send it on
  kept,      ///< into the rank's own C; what follows the kernel sends it on
};

/// How a gemm_all_scatter is carried out on a GPU.
struct scatter_plan {
  gemm_plan protocol;  ///< as the protocol sees it: the blocks that multiply are one worker
  sm90::gemm_plan gemm;
  scatter_way way = scatter_way::straight;
  int leading = 0;  ///< blocks that only move, in the kernel that multiplies
  int apart = 0;    ///< blocks of a kernel that only moves
  int streams = 0;  ///< of copy engines
  int parts = 1;    ///< of a tile of the protocol, each stored by one thread
  /// Kernels that multiply, one after the other, so many rows of A each. With copy engines, what
  /// one has stored is sent while the next ones multiply.
  int bands = 1;
  std::int64_t band_rows = 0;

  [[nodiscard]] std::string text() const;
  /// What all ranks have to have planned alike.
  [[nodiscard]] std::vector<std::string> agreed() const;
};

/// Plans for a GPU of `processors` multiprocessors, the one that the model of the GEMM, or of when
/// its results have left, likes best first. `options.how` is a pattern of own kernels, not
/// `automatic`.
[[nodiscard]] std::vector<scatter_plan> scatter_plans(const gemm_all_scatter_problem& problem,
                                                      int world, int rank,
                                                      const operator_options& options,
                                                      int processors);

}  // namespace untax

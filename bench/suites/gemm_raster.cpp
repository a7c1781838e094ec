#include "bench/suites/gemm_raster.hpp"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include <untax/locality/library.hpp>
#include <untax/locality/simulate.hpp>

namespace untax::bench {
namespace {

constexpr int widths[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};
constexpr int steps_in_one = 8;  // of 64 elements of k: quicker to simulate

/// The tiles of blocks. Those of a cluster are adjacent along the M operand, which is the x axis.
locality::kernel tiles_of(const gpu::gemm_plan& p, const gpu::gemm_shape& shape) {
  const int rows = tile_rows(p.config);
  const int columns = p.config.block_n;
  const auto along_m = static_cast<double>(p.schedule.m_tiles) * p.config.cluster * rows;
  const auto along_n = static_cast<double>(p.schedule.n_tiles) * columns;
  return locality::kernel_named("gemm", {{"n", along_m},
                                         {"m", along_n},
                                         {"k", static_cast<double>(shape.k)},
                                         {"tile_n", static_cast<double>(rows)},
                                         {"tile_m", static_cast<double>(columns)}})
      .coarsened(steps_in_one);
}

locality::schedule blocks_in(const gpu::tile_scheduler& order, int cluster) {
  locality::schedule result;
  for (int tile = 0; tile < order.tiles(); ++tile) {
    const auto [m, n] = order.at(tile);
    for (int block = 0; block < cluster; ++block)
      result.blocks.push_back((n * order.m_tiles + m) * cluster + block);
  }
  return result;
}

}  // namespace

gpu::gemm_plan with_searched_raster(const gpu::gemm_plan& plan, const gpu::gemm_shape& shape,
                                    const locality::device& d) {
  gpu::gemm_plan best = plan;
  if (plan.schedule.tiles() <= plan.schedule.clusters || plan.config.cluster_split_k > 1)
    return best;
  const locality::kernel k = tiles_of(plan, shape);
  const auto cost_of = [&](const gpu::gemm_plan& p) {
    const locality::outcome result =
        locality::simulate(k, d, blocks_in(gpu::tile_scheduler(p.schedule), p.config.cluster));
    return std::pair{result.seconds, result.memory_bytes};
  };
  auto least = cost_of(plan);
  for (const int width : widths) {
    gpu::gemm_plan candidate = plan;
    candidate.schedule.raster_group = std::min(width, plan.schedule.m_tiles);
    if (candidate.schedule.raster_group == plan.schedule.raster_group) continue;
    const auto cost = cost_of(candidate);
    if (cost >= least) continue;
    least = cost;
    best = candidate;
  }
  return best;
}

}  // namespace untax::bench

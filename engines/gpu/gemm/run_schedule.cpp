#include "engines/gpu/gemm/run_schedule.hpp"

#include <algorithm>
#include <limits>

namespace untax::gpu {
namespace {

bool can_cut(const row_capacity& capacity) {
  return capacity.cuts || capacity.most.stream_k_tiles > 0;
}
int row_tiles_of(const tile_config& c, const tile_schedule& order) {
  return c.swap_ab ? order.n_tiles : order.m_tiles;
}
int rows_of_tile(const tile_config& c) { return c.swap_ab ? c.block_n : cluster_rows(c); }

}  // namespace

row_capacity capacity_of(const gemm_plan& p, bool cuts) {
  const tile_schedule& order = p.schedule;
  // Shares are counted in 32 bits: see tile_scheduler. Clusters of four leave parts of the GPU
  // idle.
  const std::int64_t stages = std::int64_t{2} * order.clusters * order.stages();
  return {order, cuts && p.config.cluster_split_k == 1 && p.config.cluster <= 2 &&
                     stages <= std::numeric_limits<std::int32_t>::max()};
}

int least_row_tiles(const tile_config& c, const row_capacity& capacity, bool whole) {
  const tile_schedule& order = capacity.most;
  const int most = row_tiles_of(c, order);
  const int across = order.tiles() / most;
  const bool cuts = !whole && can_cut(capacity);
  return std::min(most, ceil_div(order.clusters, cuts ? across * order.stages() : across));
}

run_schedule schedule_of_run(const tile_config& c, const row_capacity& capacity, int row_tiles) {
  gemm_plan run{c, capacity.most};
  tile_schedule& order = run.schedule;
  const int across = order.tiles() / row_tiles_of(c, order);
  run.multicast_rows = c.block_n / c.cluster;
  const gemm_shape shape{std::int64_t{row_tiles} * rows_of_tile(c),
                         std::int64_t{across} * (c.swap_ab ? cluster_rows(c) : c.block_n),
                         std::int64_t{order.k_blocks} * block_k};
  const auto timed = [&] {
    return run_schedule{order, cycles_of_operators(shape, run, run.blocks(), false)};
  };
  if (row_tiles == row_tiles_of(c, order)) return timed();
  (c.swap_ab ? order.n_tiles : order.m_tiles) = row_tiles;
  order.stream_k_tiles = 0;
  const run_schedule whole = timed();
  const int last = order.tiles() % order.clusters;
  if (last == 0 || !can_cut(capacity)) return whole;
  order.stream_k_tiles = last + (order.tiles() > order.clusters ? order.clusters : 0);
  const run_schedule shared = timed();
  return order.tiles() < order.clusters || shared.cycles < whole.cycles ? shared : whole;
}

tile_schedule schedule_of_rows(const tile_config& c, const row_capacity& capacity,
                               std::int64_t rows) {
  // The blocks of a cluster that share a tile have one tile, whatever the number of rows is.
  if (c.cluster_split_k > 1) return capacity.most;
  const auto needed = static_cast<int>(ceil_div<std::int64_t>(rows, rows_of_tile(c)));
  const auto timed = [&](bool whole) {
    return schedule_of_run(c, capacity, std::max(needed, least_row_tiles(c, capacity, whole)));
  };
  const run_schedule fewest = timed(false);
  const run_schedule whole = timed(true);
  return whole.cycles < fewest.cycles ? whole.order : fewest.order;
}

std::size_t partials_bytes(const tile_config& c, const row_capacity& capacity) {
  if (!can_cut(capacity)) return 0;
  return static_cast<std::size_t>(gemm_plan{c, capacity.most}.blocks()) *
         static_cast<std::size_t>(partial_bytes(c));
}

}  // namespace untax::gpu

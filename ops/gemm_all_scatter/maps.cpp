#include "ops/gemm_all_scatter/maps.hpp"

#include <algorithm>

#include <untax/tile/order.hpp>

namespace untax {
gpu::tma_tile_size tma_tile_of(const gemm_all_scatter_protocol& how) {
  const tile_grid grid = how.tiles();
  const auto rows = static_cast<int>(grid.rows.step);
  gpu::tma_tile_size tile{rows, static_cast<int>(grid.cols.step)};
  while (!gpu::fits_tma(tile, gpu::tma_tile_bytes) || rows % tile.rows != 0) --tile.rows;
  return tile;
}

scatter_maps maps_of(const gemm_all_scatter_problem& problem, const scatter_plan& plan,
                     const gemm_all_scatter_protocol& how, const gemm_operands& operands) {
  const std::int64_t n = problem.n;
  const std::int64_t k = problem.k;
  const range columns = how.tiles().cols.whole;
  const auto at = [](const void* data, std::int64_t bytes) {
    return static_cast<const std::byte*>(data) + bytes;
  };
  const auto own_columns = [&](int hop, range rows) {
    const int peer = receiver_at_hop(how.rank(), hop, how.world());
    return gpu::matrix_at{at(operands.c, (rows.begin * n + columns.begin) * 2 +
                                             (peer - how.rank()) * operands.between),
                          rows.size, columns.size, n};
  };
  scatter_maps maps;
  maps.b = {operands.weights, columns.size, k, k};
  for (std::int64_t begin = 0; begin < problem.m; begin += plan.split_rows) {
    const range rows{begin, std::min(problem.m - begin, plan.split_rows)};
    maps.row_splits.push_back(
        {{at(operands.a, rows.begin * k * 2), rows.size, k, k}, own_columns(0, rows)});
  }
  for (int hop = 1; plan.way == scatter_way::store_to_peers && hop < how.world(); ++hop)
    maps.copies.push_back(own_columns(hop, {0, problem.m}));
  if (plan.way != scatter_way::tile_flags) return maps;
  const gpu::tma_tile_size tma_tile = tma_tile_of(how);
  for (int hop = 0; hop < how.world(); ++hop)
    maps.tma_tiles.push_back(
        {own_columns(hop, {0, problem.m}), 1, problem.m * n, tma_tile.rows, tma_tile.columns});
  return maps;
}

comm::transfer_lists lists_of(const gemm_all_scatter_protocol& how) {
  return comm::lower(comm::senders_of(how), how.tiles().cols.whole.begin, true);
}

}  // namespace untax

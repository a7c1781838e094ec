#pragma once

#include <cstddef>
#include <cstdint>

#include "engines/gpu/gemm/config.hpp"
#include "engines/gpu/gemm/plan.hpp"

namespace untax::gpu {

/// Rows of the M operand in the tiles of a cluster.
[[nodiscard]] constexpr int cluster_rows(const tile_config& c) { return tile_rows(c) * c.cluster; }

/// The part of a plan that is the same for runs with fewer rows of A, beside its kernel, its grid
/// and the memory for partial sums.
struct row_capacity {
  tile_schedule most;  ///< the schedule of the most rows
  bool cuts = false;   ///< runs may cut tiles
};
/// The capacity of a plan for the most rows. `cuts`: runs may cut tiles where the kernel can, also
/// if the plan cuts none; bits then depend on the number of rows.
[[nodiscard]] row_capacity capacity_of(const gemm_plan& p, bool cuts);

/// The fewest row tiles of a run with which every cluster has work. `whole`: each cluster has a
/// whole tile, if the plan has so many.
[[nodiscard]] int least_row_tiles(const tile_config& c, const row_capacity& capacity, bool whole);

/// How a run is computed.
struct run_schedule {
  tile_schedule order;
  double cycles = 0;  ///< as the model estimates them, with the parameters of operators
};
/// The schedule for so many row tiles, `least_row_tiles` at least. Tiles that fill no wave are cut
/// where that is possible, and expected to be quicker. Plain arithmetic: the same for all ranks.
[[nodiscard]] run_schedule schedule_of_run(const tile_config& c, const row_capacity& capacity,
                                           int row_tiles);
/// The quickest schedule for so many rows of A: tiles behind them are left out.
[[nodiscard]] tile_schedule schedule_of_rows(const tile_config& c, const row_capacity& capacity,
                                             std::int64_t rows);

/// Bytes of partial sums that all blocks together may store in any run.
[[nodiscard]] std::size_t partials_bytes(const tile_config& c, const row_capacity& capacity);

}  // namespace untax::gpu

#include "ops/gemm_all_scatter/leaving.hpp"

#include <algorithm>

#include <untax/core/types.hpp>

namespace untax {
namespace {

// Measured on H200, in cycles of 1755 MHz.
constexpr double link_bytes_per_cycle = 188;  // out of a rank
constexpr double narrow_tiles = 1.08;         // what 128 columns take longer while results leave
constexpr double between_kernels = 3500;  // from one's last result to the next one's first slice
constexpr double to_begin_a_copy = 7000;  // from a kernel's end

/// How often each cluster finishes tiles.
int rounds_of(const sm90::tile_schedule& order) {
  return std::max(ceil_div(order.tiles(), order.clusters), 1);
}

/// Cycles that a link needs for what becomes of so many tiles.
double sending(const sm90::gemm_plan& plan, int world, int tiles) {
  const double tile = 2.0 * tile_rows(plan.config) * plan.config.columns * plan.config.cluster;
  return tiles * tile * (world - 1) / link_bytes_per_cycle;
}

}  // namespace

double cycles_until_left(const sm90::gemm_plan& plan, int world) {
  const sm90::tile_schedule& order = plan.schedule;
  const bool narrow = !plan.config.swapped && plan.config.columns == 128;
  const double multiplied = plan.cycles * (world > 1 && narrow ? narrow_tiles : 1);
  const double round = multiplied / rounds_of(order);
  const int whole = order.whole_tiles();
  double free = 0;  // when the link has sent what was finished so far
  double now = 0;
  for (int tile = 0; tile < whole; tile += order.clusters) {
    now += round;
    free = std::max(free, now) + sending(plan, world, std::min(order.clusters, whole - tile));
  }
  // Those that clusters share are finished by all at the end.
  return std::max(free, multiplied) + sending(plan, world, order.streamed);
}

double cycles_until_copied(const sm90::gemm_plan& plan, int bands, int world) {
  const double band = sending(plan, world, plan.schedule.tiles());
  double free = 0;
  double now = 0;
  for (int i = 0; i < bands; ++i) {
    now += plan.cycles + between_kernels;
    free = std::max(free, now + to_begin_a_copy) + band;
  }
  return free;
}

}  // namespace untax

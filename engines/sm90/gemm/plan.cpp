#include "engines/sm90/gemm/plan.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include <untax/core/error.hpp>

namespace untax::sm90 {
namespace {

constexpr double products_per_cycle = 2048;
constexpr double l2_bytes_per_cycle = 40;
constexpr double memory_bytes_per_cycle = 18;  // of each multiprocessor
constexpr double handover_cycles = 2000;       // until another block sees sums
constexpr double sums_bytes_per_cycle = 32;    // into L2, and out of it
constexpr double whole_tile_cycles = 1200;     // to stage results, while nothing is multiplied

void require_computable(const gemm_shape& s) {
  const auto refuse = [&](const char* what) {
    throw error(errc::invalid_argument, fmt::format("a GEMM of m {}, n {}, k {}, {}: {}", s.m, s.n,
                                                    s.k, name_of(s.type), what));
  };
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max() / 2;
  if (s.m < 1 || s.n < 1 || s.k < 1) refuse("all have to be 1 or more");
  if (s.m > most || s.n > most || s.k > most) refuse("all have to be below 2^30");
  if (s.n % 8 != 0 || s.k % 8 != 0) refuse("n and k have to be multiples of 8");
  if (s.type == dtype::f32) refuse("elements have to be bf16 or fp16");
}

/// Cycles of a slice of one block.
double slice_cycles(const gemm_shape& s, const tile_config& c, const tile_schedule& order) {
  const double math = double{tile_rows} * c.columns * slice_depth / products_per_cycle;
  const double read = (tile_rows + own_columns(c)) * slice_depth * 2 / l2_bytes_per_cycle;
  const double operands = static_cast<double>((s.m + s.n) * s.k * 2);
  const double slices = static_cast<double>(order.tiles()) * order.slices * c.cluster;
  return std::max({math, read, operands / slices / memory_bytes_per_cycle});
}

gemm_plan plan_of(const gemm_shape& s, const tile_config& c, int processors, bool shares) {
  const std::int64_t x = c.swapped ? s.n : s.m;
  const std::int64_t y = c.swapped ? s.m : s.n;
  gemm_plan p{c, {}, 0};
  tile_schedule& order = p.schedule;
  order.x_tiles = static_cast<int>(ceil_div<std::int64_t>(x, tile_rows * c.cluster));
  order.y_tiles = static_cast<int>(ceil_div<std::int64_t>(y, c.columns));
  order.slices = static_cast<int>(ceil_div<std::int64_t>(s.k, slice_depth));
  const int tiles = order.tiles();
  const int places = processors / c.cluster;
  const double slice = slice_cycles(s, c, order);
  const double tile = slice * order.slices + whole_tile_cycles;
  if (!shares || tiles % places == 0) {
    order.clusters = std::min(tiles, places);
    p.cycles = tile * ceil_div(tiles, places);
    return p;
  }
  // The last turn, which is not full, and the one before it.
  order.streamed = tiles % places + (tiles > places ? places : 0);
  order.clusters = static_cast<int>(
      std::min<std::int64_t>(places, static_cast<std::int64_t>(order.streamed) * order.slices));
  p.cycles = tile * tiles / places + handover_cycles + 2 * partial_bytes(c) / sums_bytes_per_cycle;
  return p;
}

}  // namespace

const std::vector<tile_config>& tile_configs() {
  static const std::vector<tile_config> all = {
      {256, 2, 4, false}, {128, 2, 6, false}, {256, 2, 4, true}, {128, 2, 6, true},
      {64, 2, 8, true},   {32, 1, 9, true},   {16, 1, 10, true},
  };
  return all;
}

std::vector<gemm_plan> gemm_plans(const gemm_shape& shape, int processors) {
  require_computable(shape);
  std::vector<gemm_plan> plans;
  for (const tile_config& c : tile_configs()) {
    for (const bool shares : {false, true}) {
      gemm_plan p = plan_of(shape, c, processors, shares);
      if (!shares || p.schedule.streamed > 0) plans.push_back(p);
    }
  }
  std::ranges::stable_sort(plans, {}, &gemm_plan::cycles);
  return plans;
}

std::string gemm_plan::text() const {
  return fmt::format("{} rows of {} by {} of {}, clusters of {}, {} stages; {} x {} tiles{}",
                     tile_rows, config.swapped ? "B" : "A", config.columns,
                     config.swapped ? "A" : "B", config.cluster, config.stages, schedule.x_tiles,
                     schedule.y_tiles,
                     schedule.streamed > 0 ? fmt::format(", {} of them shared", schedule.streamed)
                                           : std::string());
}

}  // namespace untax::sm90

#include "engines/sm90/gemm/plan.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include <untax/core/error.hpp>

namespace untax::sm90 {
namespace {

constexpr double products_per_cycle = 1700;
constexpr double slice_change_cycles = 30;
constexpr double l2_bytes_per_cycle = 55;
constexpr double memory_bytes_per_cycle = 18;  // of each multiprocessor
constexpr double most_bytes_per_cycle = 26;    // of one that has the memory for itself
constexpr double out_of_step = 20;             // of 128 columns, 16 %
constexpr double handover_cycles = 2000;       // until another block sees sums
constexpr double sums_bytes_per_cycle = 16;    // into L2 and out of it
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

/// Cycles of a slice of one block, if so many blocks run.
double slice_cycles(const gemm_shape& s, const gemm_plan& p, int blocks, int processors) {
  const tile_config& c = p.config;
  const double math =
      double{tile_rows} * c.columns * slice_depth / products_per_cycle + slice_change_cycles;
  const double read = (tile_rows + own_columns(c)) * slice_depth * 2 / l2_bytes_per_cycle;
  // Blocks that do not run leave their share of the memory's rate to the others.
  const double rate = std::min(memory_bytes_per_cycle * processors / blocks, most_bytes_per_cycle);
  const double slices = static_cast<double>(p.schedule.tiles()) * p.schedule.slices * c.cluster;
  const double operands = static_cast<double>((s.m + s.n) * s.k * 2);
  return std::max({math, read, operands / slices / rate});
}

/// What cutting tiles costs, if each is shared by `pieces` clusters.
double cutting_cycles(const tile_config& c, int pieces) {
  return (pieces - 1) * (handover_cycles + partial_bytes(c) / sums_bytes_per_cycle);
}

/// The tiles of a shape, none of them given to anybody yet.
gemm_plan plan_of(const gemm_shape& s, const tile_config& c) {
  const std::int64_t x = c.swapped ? s.n : s.m;
  const std::int64_t y = c.swapped ? s.m : s.n;
  gemm_plan p{c, {}, 0};
  p.schedule.x_tiles = static_cast<int>(ceil_div<std::int64_t>(x, tile_rows * c.cluster));
  p.schedule.y_tiles = static_cast<int>(ceil_div<std::int64_t>(y, c.columns));
  p.schedule.slices = static_cast<int>(ceil_div<std::int64_t>(s.k, slice_depth));
  return p;
}

/// Every tile whole.
gemm_plan whole_tiles(const gemm_shape& s, gemm_plan p, int processors) {
  tile_schedule& order = p.schedule;
  order.clusters = std::min(order.tiles(), processors / p.config.cluster);
  const double slice = slice_cycles(s, p, order.clusters * p.config.cluster, processors);
  p.cycles = (slice * order.slices + whole_tile_cycles) * ceil_div(order.tiles(), order.clusters);
  return p;
}

/// The last turn, which is not full, and the one before it, in equal shares.
gemm_plan even_shares(const gemm_shape& s, gemm_plan p, int processors) {
  tile_schedule& order = p.schedule;
  const int places = processors / p.config.cluster;
  const int tiles = order.tiles();
  order.streamed = tiles % places + (tiles > places ? places : 0);
  order.clusters = static_cast<int>(
      std::min<std::int64_t>(places, static_cast<std::int64_t>(order.streamed) * order.slices));
  const double slice = slice_cycles(s, p, order.clusters * p.config.cluster, processors);
  const double tile = (slice * order.slices + whole_tile_cycles) / order.clusters;
  // Shares that begin anywhere read the same operands at different times, some from memory again.
  const double again = p.config.swapped ? 0 : out_of_step / p.config.columns;
  // A tile touches at most so many shares.
  const int pieces = ceil_div(order.clusters, order.streamed) + 1;
  p.cycles = tile * (tiles + again * order.streamed) + cutting_cycles(p.config, pieces);
  return p;
}

/// Every tile in the same number of pieces: fewer than `even_shares` has, if some blocks idle.
gemm_plan even_pieces(const gemm_shape& s, gemm_plan p, int processors, int pieces) {
  tile_schedule& order = p.schedule;
  order.streamed = order.tiles();
  order.clusters = order.tiles() * pieces;
  const double slice = slice_cycles(s, p, order.clusters * p.config.cluster, processors);
  p.cycles =
      slice * ceil_div(order.slices, pieces) + whole_tile_cycles + cutting_cycles(p.config, pieces);
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
    const int places = processors / c.cluster;
    if (places == 0) continue;
    const gemm_plan p = plan_of(shape, c);
    // Several times the same weights, at different moments, would be read from memory as often.
    if (c.swapped && p.schedule.y_tiles > 1) continue;
    const int tiles = p.schedule.tiles();
    plans.push_back(whole_tiles(shape, p, processors));
    if (tiles % places != 0) plans.push_back(even_shares(shape, p, processors));
    const int pieces = std::min(places / tiles, p.schedule.slices);
    if (pieces > 1 && pieces * tiles < places)
      plans.push_back(even_pieces(shape, p, processors, pieces));
  }
  std::ranges::stable_sort(plans, {}, &gemm_plan::cycles);
  return plans;
}

std::string gemm_plan::text() const {
  return fmt::format(
      "{} rows of {} by {} of {}, clusters of {}, {} stages; {} x {} tiles{}", tile_rows,
      config.swapped ? "B" : "A", config.columns, config.swapped ? "A" : "B", config.cluster,
      config.stages, schedule.x_tiles, schedule.y_tiles,
      schedule.streamed > 0
          ? fmt::format(", {} of them shared by {} clusters", schedule.streamed, schedule.clusters)
          : std::string());
}

}  // namespace untax::sm90

#include "engines/gpu/gemm/plan.hpp"

#include <algorithm>

#include <untax/order/band_width.hpp>

namespace untax::gpu {
namespace {

/// The parameters of the cost model.
struct cost_parameters {
#define UNTAX_COST(name, h200, h100, of_operators) double name;
#include "engines/gpu/gemm/cost.def"
  double longer_by_160;   // factor on the products of tiles of 160 columns
  double splits_of_rows;  // factor if tiles of rows are split evenly, since all sums are then
                          // passed on at the same time
};
constexpr double no_limit = 1e300;
constexpr double l2_bytes = 60e6;  // of an H200, and approximately of an H100
#define UNTAX_COST(name, h200, h100, of_operators) h200,
constexpr cost_parameters fitted_to_h200{
#include "engines/gpu/gemm/cost.def"
    1, 1};
#define UNTAX_COST(name, h200, h100, of_operators) h100,
constexpr cost_parameters fitted_to_h100{
#include "engines/gpu/gemm/cost.def"
    1, 1};
#define UNTAX_COST(name, h200, h100, of_operators) of_operators,
constexpr cost_parameters of_operators{
#include "engines/gpu/gemm/cost.def"
    1700.0 / 1680, 1.12};

/// Bytes per cycle that each multiprocessor reads while all of them work.
struct read_rates {
  double l2;
  double memory;
  double most;  // from memory, by one multiprocessor while the others are idle
};
read_rates rates_of(const cost_parameters& cost, const tile_config& c, double share) {
  const double alone = std::min(cost.l2_alone * share, cost.most_l2_alone);
  if (c.cluster == 1) return {alone, cost.memory_alone, cost.most_alone};
  if (c.warpgroup_split_k) return {alone, cost.memory_quarters, cost.most_quarters};
  return {cost.l2_shared, cost.memory_shared, cost.most_shared};
}

/// Elements of k in a stage.
int depth_of(const tile_config& c) { return k_blocks_per_stage(c) * block_k; }

/// Cycles to multiply a stage while all multiprocessors multiply. For each 16 elements of k the
/// tensor cores read 64 rows of the M operand and all of the N operand from shared memory, where
/// TMA has written both. For narrow tiles that takes longer than the products.
double math_cycles(const cost_parameters& cost, const tile_config& c) {
  constexpr int parts = mma_warpgroups * block_k / 16;
  const double read = parts * (warpgroup_rows + c.block_n) * 16 * 2;
  const double written = (tile_rows(c) + c.block_n) * depth_of(c) * 2;
  const double products =
      1.0 * tile_rows(c) * c.block_n * depth_of(c) * (c.block_n == 160 ? cost.longer_by_160 : 1);
  return std::max(products / cost.products_per_cycle, (read + written) / cost.shared_memory) +
         cost.stage_change;
}

/// Cycles of a stage of one block, with a clock of `clock` times the usual one.
double stage_cycles(const cost_parameters& cost, const gemm_shape& s, const gemm_plan& p,
                    int num_sms, double clock) {
  const tile_config& c = p.config;
  // Blocks that do not run leave their share of the bandwidth to the other blocks.
  const double share = 1.0 * num_sms / p.blocks();
  const read_rates rates = rates_of(cost, c, share);
  const double read = (tile_rows(c) + p.multicast_rows) * depth_of(c) * 2 / rates.l2;
  const double rate = std::min(rates.memory * share, rates.most);
  const double stages = static_cast<double>(p.schedule.tiles()) * p.schedule.stages() * c.cluster;
  const auto weights = static_cast<double>(s.n * s.k * 2);
  const int more = c.swap_ab && weights > l2_bytes ? p.schedule.n_tiles - 1 : 0;
  const double operands =
      static_cast<double>(s.m * s.k * 2) + weights * (1 + more * cost.weights_again);
  return std::max({math_cycles(cost, c) / clock, read, operands / stages / rate});
}

/// Cycles to pass sums through memory if `splits` clusters share each tile.
double sums_cycles(const cost_parameters& cost, const tile_config& c, int splits) {
  return (splits - 1) * partial_bytes(c) / (c.swap_ab ? cost.sums_rate : cost.wide_sums_rate);
}

double cycles_at(const cost_parameters& cost, const gemm_shape& s, const gemm_plan& p, int num_sms,
                 double clock, bool evenly) {
  const tile_config& c = p.config;
  const tile_schedule& order = p.schedule;
  const int stages = order.stages();
  const double stage = stage_cycles(cost, s, p, num_sms, clock);
  const double results =
      cost.whole_tile + cost.whole_column * c.block_n + cost.subtile * subtiles_of(c);
  if (c.cluster_split_k > 1) {
    const double sent = partial_bytes(c) * (c.cluster_split_k - 1.0) / c.cluster_split_k;
    return stage * ceil_div(stages, c.cluster_split_k) + results + cost.joined +
           sent / cost.joined_rate;
  }
  if (order.stream_k_tiles == 0)
    return (stage * stages + results) * ceil_div(order.tiles(), order.clusters);
  if (evenly) {
    const int splits = order.clusters / order.tiles();
    return (stage * ceil_div(stages, splits) + results + cost.handover_at_once +
            sums_cycles(cost, c, splits)) *
           (c.swap_ab ? 1 : cost.splits_of_rows);
  }
  const double tile = (stage * stages + results) / order.clusters;
  // Shares that begin anywhere read the same operands at different times, some from memory again.
  double again = (c.swap_ab ? cost.out_of_step_weights : cost.out_of_step) / c.block_n;
  if (c.swap_ab && order.n_tiles == 1) again = 0;  // no other tile reads the same weights
  // Operands of all shares that do not fit into L2 are read from memory for each share.
  const int tall = std::min(order.m_tiles, order.raster_group);
  const int rows = tile_rows(c) * c.cluster;
  const double row = 2 * static_cast<double>(s.k);
  const double held =
      l2_bytes / row / (rows * tall + c.block_n * ceil_div(order.stream_k_tiles, tall));
  const double each =
      std::max(0.0, 1 - held) * (rows + c.block_n) * row / (rates_of(cost, c, 1).memory * num_sms);
  const double late = each - math_cycles(cost, c) * stages * c.cluster / num_sms;
  // The most shares that a tile touches.
  const int splits = ceil_div(order.clusters, order.stream_k_tiles) + 1;
  return tile * (order.tiles() + again * order.stream_k_tiles) + cost.handover +
         cost.from_memory * std::max(late, 0.0) * order.stream_k_tiles +
         sums_cycles(cost, c, splits);
}

}  // namespace

double plan_cycles(const gemm_shape& shape, const gemm_plan& plan, const gpu_model& gpu) {
  const cost_parameters& fitted = gpu.costs == gemm_costs::h100 ? fitted_to_h100 : fitted_to_h200;
  const tile_schedule& order = plan.schedule;
  const bool evenly = order.even_splits() > 0;
  const double usual = cycles_at(fitted, shape, plan, gpu.num_sms, 1, evenly);
  const double multiplied = static_cast<double>(order.tiles()) * order.stages() *
                            plan.config.cluster * math_cycles(fitted, plan.config);
  const double busy = std::min(1.0, multiplied / (gpu.num_sms * usual));
  const double clock = 1 + fitted.idle_gain * (1 - busy);
  const double cycles = cycles_at(fitted, shape, plan, gpu.num_sms, clock, evenly);
  if (cluster_blocks(plan.config) > 1) return cycles;
  // Blocks without a cluster get out of step. The part of their common operand that does not fit
  // into a side of L2 is then read from memory again.
  const auto shared = static_cast<double>(std::min(shape.m, shape.n) * shape.k * 2);
  const double beyond = std::clamp(2 * (shared / l2_bytes - 1.0 / 3), 0.0, 1.0);
  return cycles * (1 + fitted.drift * beyond * 1e-6 * cycles);
}

double cycles_of_operators(const gemm_shape& shape, const gemm_plan& plan, int num_sms,
                           bool evenly) {
  return cycles_at(of_operators, shape, plan, num_sms, 1, evenly);
}

std::vector<gemm_plan> plans_by_model(const gemm_shape& shape, const gpu_model& gpu) {
  std::vector<gemm_plan> plans = gemm_plans(shape, gpu.num_sms);
  // Drops tiles whose columns would mostly lie beyond the rows of A: there are narrower ones.
  std::erase_if(plans, [&](const gemm_plan& p) {
    return p.config.swap_ab && p.config.block_n > 2 * round_up<std::int64_t>(shape.m, 16);
  });
  // Each side of L2 caches all that its multiprocessors read.
  const double side = (gpu.costs == gemm_costs::h100 ? 50 : 60) * 0x1p19;
  for (gemm_plan& p : plans) {
    p.cycles = plan_cycles(shape, p, gpu);
    tile_schedule& s = p.schedule;
    s.raster_group = order::band_of_least_traffic(
        {s.m_tiles, s.n_tiles, s.clusters, tile_rows(p.config) * p.config.cluster, p.config.block_n,
         shape.k, side},
        s.raster_group);
  }
  std::ranges::stable_sort(plans, {}, &gemm_plan::cycles);
  return plans;
}

}  // namespace untax::gpu

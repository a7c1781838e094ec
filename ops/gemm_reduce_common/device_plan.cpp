#include "ops/gemm_reduce_common/device_plan.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <untax/core/error.hpp>
#include <untax/ops/problems.hpp>
#include <untax/tile/shard.hpp>

#include "engines/gpu/gemm/config.hpp"
#include "engines/gpu/gemm/kernels.hpp"
#include "ops/common/plan_agreement.hpp"
#include "ops/common/planning.hpp"

namespace untax {
namespace {

constexpr int usual_adding = 8;

/// Where sums are passed on, any rank may add any rows. A row tile of two owners is multiplied last
/// by one of them, which keeps the other waiting. So an owner has whole tiles of clusters, of
/// blocks, or of warpgroups, as long as this gives none over a quarter more than its share.
int owner_step_of(const gpu::sum_fragments& how, const gpu::gemm_plan& gemm) {
  if (!how.passes_on || how.swap_ab) return 1;
  const int share = (how.m + how.ranks - 1) / how.ranks;
  int step = gemm.config.cluster * how.tile_m;
  while (step > 1 && 4 * round_up(share, step) > 5 * share) step /= 2;
  return step;
}

/// The row tile with which a rank begins: of the first whole cluster without rows of its own.
int first_row_tile_of(const gpu::sum_fragments& how, const gpu::gemm_plan& gemm) {
  const int cluster = gemm.config.cluster;
  const int cluster_rows = cluster * how.tile_m;
  return (how.end_row(how.own_rank) + cluster_rows - 1) / cluster_rows % gemm.schedule.m_tiles *
         cluster;
}

/// Where fragments of a planned GEMM lie, and which rank adds them, but for what rows determine.
gpu::sum_fragments fragments_of(const device_sum& sum, int world, int rank,
                                const gpu::gemm_plan& gemm) {
  const gpu::tile_config& c = gemm.config;
  gpu::sum_fragments how;
  how.own_rank = rank;
  how.ranks = world;
  how.m = static_cast<int>(sum.m);
  how.n = static_cast<int>(sum.n);
  how.passes_on = sum.target == reduce_target::everywhere && sum.phases == 2 && world > 1;
  how.everywhere = sum.target == reduce_target::everywhere && !how.passes_on;
  how.halves = sum.partials != dtype::f32;
  how.swap_ab = c.swap_ab;
  how.col_tiles = c.swap_ab ? gemm.schedule.m_tiles * c.cluster : gemm.schedule.n_tiles;
  how.tile_m = c.swap_ab ? c.block_n : tile_rows(c);
  how.tile_n = c.swap_ab ? tile_rows(c) : c.block_n;
  how.groups = storing_warpgroups(c);
  how.parts = c.block_n / 8;
  return how;
}

std::vector<sums_plan> possible_plans(const device_sum& sum, int world, int rank,
                                      const operator_options& options, const gpu::gpu_model& gpu) {
  sums_plan made;
  const int most = std::max(most_beside(gpu.num_sms), 0);
  const int adding =
      std::min(round_up(options.senders > 0 ? options.senders : usual_adding, 2), most);
  made.own_grid = adding;
  int free = gpu.num_sms;
  made.beside = options.how == pattern::producer_consumer;
  if (options.how == pattern::fused_specialized) made.comm_ctas = adding;
  if (options.how != pattern::fused_sequential) free -= adding;
  std::vector<sums_plan> plans;
  if (adding == 0) return plans;
  const std::int64_t depth = sharding{sum.k, world, shard_granularity}.full();
  const gpu::gemm_shape shape{sum.m, sum.n, depth, sum.type, options.invariant};
  for (const gpu::gemm_plan& gemm :
       plans_with_wide_tiles(gpu::sums_kernels, shape, {multiplying(options, free), gpu.costs},
                             gpu::registers_with_sums)) {
    sums_plan plan = made;
    plan.gemm = gemm;
    plan.rows = gpu::capacity_of(gemm, options.varying_rows && !options.invariant);
    plan.how = fragments_of(sum, world, rank, gemm);
    plan.set_rows(sum.m);
    if (options.varying_rows) plan.how.slab_tiles = plan.how.tiles_of_any_rows();
    plans.push_back(plan);
  }
  return plans;
}

}  // namespace

void sums_plan::set_rows(std::int64_t of_run) {
  gpu::tile_schedule& order = gemm.schedule;
  order = gpu::schedule_of_rows(gemm.config, rows, of_run);
  how.m = static_cast<int>(of_run);
  how.row_tiles = how.swap_ab ? order.n_tiles : order.m_tiles * gemm.config.cluster;
  how.split(owner_step_of(how, gemm));
  if (how.swap_ab) return;
  // The tiles of an owner come before those of the next one.
  if (!how.everywhere)
    order.raster_group = std::min(order.raster_group, ceil_div(order.m_tiles, how.world()));
  how.raster_rows = order.raster_group * gemm.config.cluster;
  how.first_row_tile = first_row_tile_of(how, gemm);
}

std::vector<pattern> usual_patterns_of(const device_sum& sum, int world) {
  using enum pattern;
  if (sum.partials == dtype::f32) return {fused_sequential, fused_specialized};
  const bool passes_on = sum.target == reduce_target::everywhere;
  const std::int64_t least_rows =
      std::max<std::int64_t>(passes_on && world <= 2 ? 192 : 128, std::int64_t{32} * world);
  // If tiles are whole, sums of clusters of 256 rows are sent while others are multiplied.
  const bool whole_tiles = sum.m % (256 * world) == 0;
  const bool as_rows =
      sum.m >= least_rows && !(passes_on && (sum.phases == 1 || (sum.m >= 4096 && !whole_tiles)));
  if (as_rows) return {fused_warp_specialized, fused_sequential};
  return {fused_sequential, fused_warp_specialized};
}

int sums_plan::adding_warps(bool multiplies) const {
  constexpr int warps = gpu::sum_fragments::warps;
  if (multiplies && comm_ctas == 0 && !beside) return gemm.blocks() * gpu::mma_warpgroups * warps;
  return (multiplies && comm_ctas > 0 ? comm_ctas : own_grid) * (gpu::block_threads / 32);
}

std::vector<sums_plan> sums_plans(const device_sum& sum, int world, int rank,
                                  const operator_options& options, const gpu::gpu_model& gpu) {
  switch (options.how) {
    case pattern::producer_consumer:
    case pattern::fused_sequential:
    case pattern::fused_specialized:
      break;
    default:
      throw error(errc::unsupported,
                  fmt::format("rank {}: {}: on GPUs there is no {}; there are bulk_library, "
                              "bulk_synchronous, producer_consumer, fused_sequential, "
                              "fused_specialized and fused_warp_specialized",
                              rank, sum.operator_name, name_of(options.how)));
  }
  return plans_or_refusal(sum.operator_name, rank, sum.m, options, gpu.num_sms,
                          [&](const operator_options& with, int num_sms) {
                            return possible_plans(sum, world, rank, with, {num_sms, gpu.costs});
                          });
}

std::string sums_plan::text() const {
  const auto adders = [&]() -> std::string {
    if (comm_ctas > 0) return fmt::format("{} blocks only add", comm_ctas);
    if (beside) return fmt::format("{} blocks of another kernel add", own_grid);
    return "blocks add when they have multiplied";
  };
  const std::string whose = how.everywhere  ? "everybody adds everything"
                            : how.passes_on ? "owners add rows and pass the sum on"
                                            : "owners add rows";
  return fmt::format("{}, {} partials; {}; {}", whose, how.halves ? "16-bit" : "fp32", adders(),
                     gemm.text());
}

std::vector<std::string> sums_plan::agreed() const {
  return {
      fmt::format("m {}, n {}, everywhere {}, passes on {}, halves {}, rows of an owner {}, row "
                  "tiles {}, column tiles {}, row tiles of a slab {}, communication CTAs {}, "
                  "CTAs of their own grid {}, beside {}",
                  how.m, how.n, how.everywhere, how.passes_on, how.halves, how.owner_rows,
                  how.row_tiles, how.col_tiles, how.tiles_of_slab(), comm_ctas, own_grid, beside),
      fields_of(gemm)};
}

}  // namespace untax

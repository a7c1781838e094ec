#include "ops/gemm_reduce_common/row_plan.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <untax/core/error.hpp>
#include <untax/tile/order.hpp>
#include <untax/tile/shard.hpp>

#include "engines/gpu/gemm/kernels.hpp"
#include "ops/common/plan_agreement.hpp"
#include "ops/common/planning.hpp"

namespace untax {
namespace {

constexpr int blocks_of_a_multiprocessor = 2;  // blocks that add

/// The tiles of clusters along M in which an owner has no rows; -1 if it shares a tile with another
/// owner. Beyond the last row there is no owner.
int tiles_of_others(const gpu::owned_rows& owned, int owner, const gpu::gemm_plan& gemm) {
  const int high = cluster_rows(gemm.config);
  const int first = owned.first(owner);
  const int end = owned.end(owner);
  if (first == end) return gemm.schedule.m_tiles;
  if (first % high != 0 || (end % high != 0 && end != owned.m)) return -1;
  return gemm.schedule.m_tiles - (ceil_div(end, high) - first / high);
}

/// The raster group along M: the tiles of an owner come before those of the next one and, if
/// possible, no group has both own tiles, which are added, and those of others.
int raster_group_of(const gpu::owned_rows& owned, const gpu::gemm_plan& gemm, int world) {
  const int most = std::min(gemm.schedule.raster_group, ceil_div(gemm.schedule.m_tiles, world));
  for (int group = most; 2 * group > most; --group) {
    bool whole = true;
    for (int owner = 0; owner < world; ++owner)
      whole = whole && tiles_of_others(owned, owner, gemm) % group == 0;
    if (whole) return group;
  }
  return most;
}

row_sums_plan planned(const device_sum& sum, int world, int rank, const gpu::gemm_plan& gemm,
                      bool cuts, int num_sms) {
  row_sums_plan plan;
  plan.gemm = gemm;
  plan.rows = gpu::capacity_of(gemm, cuts);
  plan.rank = rank;
  plan.world = world;
  const bool all = sum.target == reduce_target::everywhere;
  plan.everywhere = all && sum.phases != 2 && world > 1;
  plan.passes_on = all && sum.phases == 2 && world > 1;
  plan.owned.part_rows = c_tma_tile_rows(gemm.config);
  plan.set_rows(sum.m);
  plan.slab_rows = plan.owned.slab_rows();
  const std::int64_t words =
      (plan.everywhere ? sum.m : plan.owned.owner_rows) * sum.n / gpu::row_words;
  plan.adding = static_cast<int>(std::clamp<std::int64_t>(words / gpu::row_sum_threads, 1,
                                                          blocks_of_a_multiprocessor * num_sms));
  return plan;
}

/// In a ring of three stages stream-K takes 1.02 times as long as in one of four, and without it
/// both are as quick: measured of the GEMM alone on one H200.
std::vector<gpu::gemm_plan> gemm_plans_of(const gpu::gemm_shape& shape, const gpu::gpu_model& gpu) {
  constexpr double longer_in_short_ring = 1.02;
  auto plans = plans_with_wide_tiles(gpu::scatter_kernels, shape, gpu, gpu::registers_with_sums);
  for (gpu::gemm_plan& p : plans)
    if (p.config.stages < 4 && p.schedule.stream_k_tiles > 0) p.cycles *= longer_in_short_ring;
  std::ranges::stable_sort(plans, {}, &gpu::gemm_plan::cycles);
  return plans;
}

}  // namespace

void row_sums_plan::set_rows(std::int64_t of_run) {
  gpu::tile_schedule& order = gemm.schedule;
  order = gpu::schedule_of_rows(gemm.config, rows, of_run);
  owned.m = static_cast<int>(of_run);
  owned.owner_rows = everywhere ? 0 : ceil_div(owned.m, world);
  adds_behind = world > 1 && (everywhere || gemm.config.swap_ab);
  // With swap_ab there are few row tiles, and tiles are taken along columns first.
  if (everywhere || gemm.config.swap_ab) return;
  order.raster_group = raster_group_of(owned, gemm, world);
  const int high = cluster_rows(gemm.config);
  rotation.all = order.m_tiles * high;
  rotation.first = ceil_div(owned.end(rank), high) % order.m_tiles * high;
  if (world == 1) return;
  for (int owner = 0; owner < world; ++owner) {
    const int others = tiles_of_others(owned, owner, gemm);
    const int before = others * order.n_tiles;  // tiles
    // With few other tiles, the partials of peers would arrive after the own tiles.
    adds_behind = adds_behind || others < 0 || others % order.raster_group != 0 ||
                  before > order.whole_tiles() || 4 * before < 3 * order.clusters;
  }
}

std::string row_sums_plan::text() const {
  return fmt::format("{}, 16-bit partials; epilogue warps send, {}; {}",
                     everywhere  ? "everybody adds everything"
                     : passes_on ? "owners add rows and pass the sum on"
                                 : "owners add rows",
                     adds_behind ? "another kernel adds" : "warps that multiply add", gemm.text());
}

std::vector<std::string> row_sums_plan::agreed() const {
  return {fmt::format("m {}, rows of an owner {}, rows of a part {}, rows of a slab {}, passes on "
                      "{}, CTAs that add {}",
                      owned.m, owned.owner_rows, owned.part_rows, slab_rows, passes_on, adding),
          fields_of(gemm)};
}

gemm_all_scatter_protocol row_sums_plan::meetings() const {
  // Tiles do not matter here: all of C is one tile.
  return {{owned.m, world * shard_granularity, 1},
          {.world = world,
           .rank = rank,
           .how = pattern::fused_sequential,
           .workers = 2,
           .tile_m = owned.m,
           .tile_n = shard_granularity}};
}

gpu::matrix_at row_sums_plan::slab_at(const symmetric<std::byte>& inbox, int hop,
                                      std::int64_t n) const {
  const int owner = receiver_at_hop(rank, hop, world);
  const int rows = owned.owns_some(owner) ? owned.end(owner) - owned.slab_begin(owner) : 0;
  return {inbox.at(owner) + rank * slab_bytes(n), rows, n, n};
}

std::vector<row_sums_plan> row_sums_plans(const device_sum& sum, int world, int rank,
                                          const operator_options& options,
                                          const gpu::gpu_model& gpu) {
  if (sum.partials == dtype::f32) {
    throw error(errc::unsupported,
                fmt::format("rank {}: {}: in {} partials are elements of 16 bits; these are fp32, "
                            "which fused_sequential has",
                            rank, sum.operator_name, name_of(options.how)));
  }
  const std::int64_t depth = sharding{sum.k, world, shard_granularity}.full();
  const gpu::gemm_shape shape{sum.m, sum.n, depth, sum.type, options.invariant};
  return plans_or_refusal(sum.operator_name, rank, sum.m, options, gpu.num_sms,
                          [&](const operator_options& with, int num_sms) {
                            std::vector<row_sums_plan> plans;
                            const bool cuts = with.varying_rows && !with.invariant;
                            for (const gpu::gemm_plan& gemm :
                                 gemm_plans_of(shape, {multiplying(with, num_sms), gpu.costs}))
                              plans.push_back(planned(sum, world, rank, gemm, cuts, num_sms));
                            return plans;
                          });
}

}  // namespace untax

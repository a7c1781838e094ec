#include "ops/gemm_reduce_common/device_plan.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <untax/core/error.hpp>
#include <untax/ops/problems.hpp>
#include <untax/tile/order.hpp>
#include <untax/tile/shard.hpp>

#include "engines/gpu/gemm/config.hpp"
#include "engines/gpu/gemm/kernels.hpp"
#include "ops/common/plan_agreement.hpp"
#include "ops/common/planning.hpp"

namespace untax {
namespace {

constexpr int usual_adding = 8;

/// If sums are passed on, any rank may add any rows. A row tile of two owners is multiplied last by
/// only one of them, which makes the other owner wait. So an owner has whole tiles of clusters, of
/// blocks, or of warpgroups, as long as that gives no owner over a quarter more than its share.
int owner_step_of(const gpu::sum_fragments& how, const gpu::gemm_plan& gemm) {
  if (!how.passes_on || how.swap_ab) return 1;
  const int share = (how.m + how.ranks - 1) / how.ranks;
  int step = gemm.config.cluster * how.tile_m;
  while (step > 1 && 4 * round_up(share, step) > 5 * share) step /= 2;
  return step;
}

/// The row tile with which a rank begins: the first whole cluster without rows of its own.
int first_row_tile_of(const gpu::sum_fragments& how, const gpu::gemm_plan& gemm) {
  const int cluster = gemm.config.cluster;
  const int cluster_rows = cluster * how.tile_m;
  return (how.end_row(how.own_rank) + cluster_rows - 1) / cluster_rows % gemm.schedule.m_tiles *
         cluster;
}

/// The places of the fragments of a planned GEMM, and the ranks that add them, apart from fields
/// that depend on rows.
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

constexpr int blocks_of_a_multiprocessor = 2;  // blocks on a multiprocessor that add

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
/// possible, no group has both the rank's own tiles, which are added, and tiles of other owners.
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

/// With a ring of three stages stream-K takes 1.02 times as long as with four; without stream-K
/// both take equally long. Measured with the GEMM alone on one H200.
std::vector<gpu::gemm_plan> gemm_plans_of(const gpu::gemm_shape& shape, const gpu::gpu_model& gpu) {
  constexpr double longer_in_short_ring = 1.02;
  auto plans = plans_with_wide_tiles(gpu::scatter_kernels, shape, gpu, gpu::registers_with_sums);
  for (gpu::gemm_plan& p : plans)
    if (p.config.stages < 4 && p.schedule.stream_k_tiles > 0) p.cycles *= longer_in_short_ring;
  std::ranges::stable_sort(plans, {}, &gpu::gemm_plan::cycles);
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
  // If tiles are whole, the sums of clusters of 256 rows are sent while other clusters multiply.
  const bool whole_tiles = sum.m % (256 * world) == 0;
  const bool as_rows =
      sum.m >= least_rows && !(passes_on && (sum.phases == 1 || (sum.m >= 4096 && !whole_tiles)));
  if (as_rows) return {fused_warp_specialized, fused_sequential};
  return {fused_sequential, fused_warp_specialized};
}

gemm_reduce_protocol sums_plan::exchange(const device_sum& sum) const {
  return {{sum.m, sum.n, sum.k, sum.target, how.full_rows()},
          {.world = how.world(),
           .rank = how.rank(),
           .how = pattern::fused_sequential,
           .phases = how.passes_on ? 2 : 1,
           .tile_m = how.tile_m,
           .tile_n = how.tile_n,
           .sets = gpu::sum_fragments::sets().sets}};
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
                  fmt::format("rank {}: {}: GPUs have no {}; they have bulk_library, "
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
    const int before = others * order.n_tiles;  // tiles of other owners
    // With few tiles of other owners, the partials of peers would arrive after the rank's own
    // tiles.
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

gemm_reduce_protocol row_sums_plan::exchange(const device_sum& sum) const {
  const gpu::tile_config& c = gemm.config;
  return {{sum.m, sum.n, sum.k, sum.target},
          {.world = world,
           .rank = rank,
           .how = pattern::fused_warp_specialized,
           .phases = passes_on ? 2 : 1,
           .tile_m = owned.part_rows,
           .tile_n = c.swap_ab ? tile_rows(c) : c.block_n}};
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
    throw error(errc::unsupported, fmt::format("rank {}: {}: {} sends partials of 16 bits only; "
                                               "these are fp32, which fused_sequential sends",
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

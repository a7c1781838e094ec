#include "engines/gpu/gemm/plan.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "engines/gpu/gemm/kernels.hpp"
#include "engines/gpu/gemm/variant.hpp"

namespace untax::gpu {
namespace {

/// The clusters that can run at once. Each of the eight GPCs of a GPU has its multiprocessors in
/// pairs, so clusters of four blocks leave at most two of them unused.
int places_of(const tile_config& c, int num_sms) {
  const int blocks = cluster_blocks(c);
  return blocks <= 2 ? num_sms / blocks : std::max(num_sms - 16, 0) / blocks;
}

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

/// Whether a kernel adds sums in the order of ranges, as needed if bits may depend on n and k
/// alone: one warpgroup has all ranges, or each warpgroup that splits k in a cluster has one.
bool adds_in_ranges(const gemm_shape& s, const tile_config& c) {
  const int ranges = ranges_of(s.n, s.k);
  if (c.cluster_split_k > 1) return c.cluster_split_k * k_blocks_per_stage(c) == ranges;
  return ranges == 1 ? !c.warpgroup_split_k : adds_ranges(c, registers_alone);
}

/// The tiles of a shape, not yet assigned to clusters.
gemm_plan plan_of(const gemm_shape& s, const tile_config& c) {
  const auto parts = [](std::int64_t all, std::int64_t of) {
    return static_cast<int>(ceil_div(all, of));
  };
  const std::int64_t n = c.swap_ab ? s.m : s.n;
  const int each = k_blocks_per_stage(c);
  gemm_plan p;
  p.config = c;
  p.schedule.m_tiles = parts(c.swap_ab ? s.n : s.m, tile_rows(c) * c.cluster);
  p.schedule.n_tiles = parts(n, c.block_n);
  p.schedule.k_blocks_per_stage = each;
  p.schedule.k_blocks = parts(s.k, each * block_k) * each;
  if (const int ranges = s.invariant ? ranges_of(s.n, s.k) : 1; ranges > 1) {
    p.schedule.range_k_blocks = parts(s.k, ranges * block_k);
    // Two ranges that share stages have the same length: k-blocks behind k are zeros.
    if (each > 1) p.schedule.k_blocks = ranges * p.schedule.range_k_blocks;
  }
  p.schedule.part_k_blocks = p.schedule.k_blocks;
  p.multicast_rows = multicast_rows_of(c, n);
  return p;
}

/// Whether a schedule can count the stages of so many cut tiles, see tile_scheduler.
bool can_cut(const tile_schedule& order, int tiles) {
  return static_cast<std::int64_t>(tiles) * order.stages() <=
         std::numeric_limits<std::int32_t>::max();
}

/// Cuts the last `tiles` tiles into equal shares, one per cluster.
gemm_plan cut(gemm_plan p, int tiles, std::int64_t clusters) {
  p.schedule.stream_k_tiles = tiles;
  p.schedule.clusters = static_cast<int>(clusters);
  return p;
}

}  // namespace

int ranges_of(std::int64_t n, std::int64_t k) {
  // A constant: ranges depend neither on the GPU nor on how many of its SMs a GEMM may use.
  constexpr int num_sms = 132;
  const std::int64_t tiles = ceil_div<std::int64_t>(n, warpgroup_rows);
  const std::int64_t k_blocks = ceil_div<std::int64_t>(k, block_k);
  std::int64_t ranges = mma_warpgroups;
  for (const int blocks : {2, 4})
    if (tiles <= places_of({.cluster = 1, .cluster_split_k = blocks}, num_sms))
      ranges = mma_warpgroups * blocks;
  const auto are_too_many = [&] {
    return ranges * ranges > 2 * k_blocks || (ranges - 1) * ceil_div(k_blocks, ranges) >= k_blocks;
  };
  while (ranges > 1 && are_too_many()) ranges /= 2;
  return static_cast<int>(ranges);
}

int multicast_rows_of(const tile_config& c, std::int64_t rows) {
  constexpr std::int64_t swizzled_rows = 8;
  const std::int64_t all = std::min<std::int64_t>(rows, c.block_n);
  return static_cast<int>(round_up(ceil_div<std::int64_t>(all, c.cluster), swizzled_rows));
}

operand_end m_end_of(const gemm_plan& p, std::int64_t rows) {
  const int left = static_cast<int>(rows % tile_rows(p.config));
  return {static_cast<int>(rows) - left, left};
}
operand_end n_end_of(const gemm_plan& p, std::int64_t rows) {
  const int left = static_cast<int>(rows % p.config.block_n);
  // If there is only one tile, `multicast_rows` already fits its rows.
  if (left == 0 || p.schedule.n_tiles == 1) return {std::numeric_limits<int>::max(), 0};
  return {static_cast<int>(rows) - left, multicast_rows_of(p.config, left)};
}

std::vector<gemm_plan> gemm_plans(const gemm_shape& shape, int num_sms) {
  require_computable(shape);
  std::vector<gemm_plan> plans;
  const auto add = [&](gemm_plan p, bool evenly = false) {
    p.cycles = cycles_of_operators(shape, p, num_sms, evenly);
    plans.push_back(p);
  };
  for (const tile_config& c : gemm_kernels) {
    const int places = places_of(c, num_sms);
    if (places < 1 || (shape.invariant && !adds_in_ranges(shape, c))) continue;
    gemm_plan p = plan_of(shape, c);
    // The narrower a tile is, the sooner reading weights again takes longer than multiplying them.
    if (rereads_weights(p) && c.block_n < 64) continue;
    // Narrower tiles of this list have room for all rows.
    if (c.swap_ab && c.block_n > 128 && 2 * shape.m <= c.block_n) continue;
    const int tiles = p.schedule.tiles();
    p.schedule.clusters = std::min(tiles, places);
    if (c.cluster_split_k > 1) {
      // The blocks of a cluster share each tile, if all clusters can run at once.
      if (tiles <= places && p.schedule.stages() >= c.cluster_split_k) add(p);
      continue;
    }
    add(p);
    if (shape.invariant || !can_cut(p.schedule, std::min(tiles, 2 * places))) continue;
    // Cuts the tiles of the last wave, which is not full, and of the wave before it. Not for
    // clusters of four, which leave parts of the GPU idle anyway: smaller clusters can use these.
    const int last = tiles % places + (tiles > places ? places : 0);
    if (tiles % places != 0 && c.cluster <= 2)
      add(cut(p, last, std::min<std::int64_t>(places, std::int64_t{last} * p.schedule.stages())));
    // Cuts every tile into equally many splits. Some blocks then idle; a plan without idle blocks
    // was added above.
    const int splits = std::min(places / tiles, p.schedule.stages());
    if (splits > 1 && (splits * tiles < places || c.cluster > 2))
      add(cut(p, tiles, tiles * splits), true);
  }
  std::ranges::stable_sort(plans, {}, &gemm_plan::cycles);
  return plans;
}

std::string gemm_plan::text() const {
  return fmt::format(
      "{} rows of {} by {} of {}, clusters of {}{}, {} stages; {} x {} tiles{}", tile_rows(config),
      config.swap_ab ? "B" : "A", config.block_n, config.swap_ab ? "A" : "B",
      cluster_blocks(config),
      config.cluster_split_k > 1 ? fmt::format(", {} to a tile", config.cluster_split_k)
                                 : std::string(),
      config.stages, schedule.m_tiles, schedule.n_tiles,
      schedule.stream_k_tiles > 0 ? fmt::format(", {} of them shared by {} clusters",
                                                schedule.stream_k_tiles, schedule.clusters)
      : schedule.range_k_blocks > 0
          ? fmt::format(", k in ranges of {}", schedule.range_k_blocks * block_k)
          : std::string());
}

void refuse_plan(std::string_view operator_name, int rank, std::int64_t rows, int workers,
                 int num_sms, const std::function<bool(int, int)>& possible) {
  constexpr int most_num_sms = 256;  // more than any GPU has
  std::string why = fmt::format("with so few blocks (option workers is {})", workers);
  int least = workers + 1;
  while (workers > 0 && least <= num_sms && !possible(least, num_sms)) ++least;
  if (workers == 0 || least > num_sms) {
    why = fmt::format("with the {} multiprocessors that the rank has of its GPU", num_sms);
    least = num_sms + 1;
    while (least <= most_num_sms && !possible(0, least)) ++least;
  }
  throw error(
      errc::unsupported,
      fmt::format("rank {}: {}: no kernel multiplies {} rows {}{}", rank, operator_name, rows, why,
                  least <= most_num_sms ? fmt::format("; {} would do", least) : ""));
}

kernel_variant variant_for(std::span<const kernel_variant> variants, const tile_config& planned) {
  const auto found = std::ranges::find(variants, planned, &kernel_variant::config);
  if (found != variants.end()) return *found;
  throw error(
      errc::internal,
      fmt::format(
          "no kernel in kernels.hpp has {} sub-tiles of results and the tiles of a plan: {}",
          planned.epilogue_buffers, gemm_plan{planned, {}}.text()));
}

}  // namespace untax::gpu

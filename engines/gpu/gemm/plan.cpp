#include "engines/gpu/gemm/plan.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "engines/gpu/gemm/kernels.hpp"

namespace untax::gpu {
namespace {

// Measured on an H200, in cycles of 1755 MHz.
constexpr double products_per_cycle = 1700;
constexpr double products_per_cycle_of_160 = 1680;  // with tiles of so many columns
constexpr double stage_change_cycles = 30;

/// Bytes a cycle that come to each multiprocessor, if all work.
struct read_rates {
  double l2;
  double memory;
  double most;  // from memory, to one that has it for itself
};
/// Tiles of 64 rows read 256 bytes of a row at once, and where no block reads for another one, all
/// of them more of L2.
constexpr read_rates rates_of(const tile_config& c) {
  if (!c.warpgroup_split_k && c.cluster > 1) return {55, 18, 26};
  return c.cluster == 1 ? read_rates{36.5, 19.7, 21.5} : read_rates{36.5, 20.2, 22};
}

constexpr double out_of_step = 26;           // of 128 columns, 20 %
constexpr double handover_cycles = 2000;     // until another block sees sums
constexpr double sums_bytes_per_cycle = 16;  // into L2 and out of it, few at a time
constexpr double wide_sums_bytes_per_cycle = 12;
constexpr double joined_bytes_per_cycle = 24;  // from block to block of a cluster
constexpr double whole_tile_cycles = 1200;     // to stage results, while nothing is multiplied
/// How much longer it takes where all tiles of rows are cut: all are handed over at the same time.
constexpr double splits_of_rows = 1.12;

/// Clusters that run at the same time. Of each of the eight parts of a GPU, whose multiprocessors
/// come in pairs, those of four blocks leave two out at most.
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

/// Elements of a row in a stage.
constexpr int stage_depth(const tile_config& c) { return k_blocks_per_stage(c) * block_k; }
/// Stages in a tile.
constexpr int stages_of(const tile_schedule& order) {
  return order.k_blocks / order.k_blocks_per_stage;
}

/// Cycles of a stage of one block, if so many blocks run.
double stage_cycles(const gemm_shape& s, const gemm_plan& p, int blocks, int num_sms) {
  const tile_config& c = p.config;
  const double mma_rate = c.block_n == 160 ? products_per_cycle_of_160 : products_per_cycle;
  const double math =
      1.0 * tile_rows(c) * c.block_n * stage_depth(c) / mma_rate + stage_change_cycles;
  // Blocks that do not run leave their share to the others.
  const double share = 1.0 * num_sms / blocks;
  const read_rates rates = rates_of(c);
  const double l2 = c.warpgroup_split_k || c.cluster == 1 ? rates.l2 * share : rates.l2;
  const double read = (tile_rows(c) + p.multicast_rows) * stage_depth(c) * 2 / l2;
  const double rate = std::min(rates.memory * share, rates.most);
  const double stages = static_cast<double>(p.schedule.tiles()) * stages_of(p.schedule) * c.cluster;
  const double operands = static_cast<double>((s.m + s.n) * s.k * 2);
  return std::max({math, read, operands / stages / rate});
}

/// What cutting tiles costs, if each is shared by `splits` clusters.
double split_cycles(const tile_config& c, int splits) {
  const double rate = c.swap_ab ? sums_bytes_per_cycle : wide_sums_bytes_per_cycle;
  return handover_cycles + (splits - 1) * partial_bytes(c) / rate;
}

/// Ranges of k-blocks, and as many of these as are whole stages: those behind k are zeros.
void cut_in_ranges(const gemm_shape& s, tile_schedule& order) {
  const int ranges = ranges_of(s.n, s.k);
  if (ranges == 1) return;
  order.range_k_blocks = static_cast<int>(ceil_div<std::int64_t>(s.k, block_k * ranges));
  if (order.k_blocks_per_stage > 1) order.k_blocks = ranges * order.range_k_blocks;
}

/// Whether a kernel adds what may depend on n and k alone in the order of ranges: a warpgroup has
/// all of them, or every one of those that split k in a cluster has one.
bool adds_in_ranges(const gemm_shape& s, const tile_config& c) {
  const int ranges = ranges_of(s.n, s.k);
  if (c.cluster_split_k > 1) return c.cluster_split_k * k_blocks_per_stage(c) == ranges;
  return ranges == 1 ? !c.warpgroup_split_k : adds_ranges(c, registers_alone);
}

/// The tiles of a shape, none of them given to anybody yet.
gemm_plan plan_of(const gemm_shape& s, const tile_config& c) {
  const std::int64_t m = c.swap_ab ? s.n : s.m;
  const std::int64_t n = c.swap_ab ? s.m : s.n;
  gemm_plan p;
  p.config = c;
  p.schedule.m_tiles = static_cast<int>(ceil_div<std::int64_t>(m, tile_rows(c) * c.cluster));
  p.schedule.n_tiles = static_cast<int>(ceil_div<std::int64_t>(n, c.block_n));
  p.schedule.k_blocks_per_stage = k_blocks_per_stage(c);
  p.schedule.k_blocks =
      static_cast<int>(ceil_div<std::int64_t>(s.k, stage_depth(c))) * p.schedule.k_blocks_per_stage;
  if (s.invariant) cut_in_ranges(s, p.schedule);
  p.schedule.part_k_blocks = p.schedule.k_blocks;
  p.multicast_rows = multicast_rows_of(c, n);
  return p;
}

/// Whether a schedule can count what is cut, see tile_schedule.
bool can_cut(const tile_schedule& order, int tiles) {
  return static_cast<std::int64_t>(tiles) * stages_of(order) <=
         std::numeric_limits<std::int32_t>::max();
}

/// Every tile whole.
gemm_plan whole_tiles(const gemm_shape& s, gemm_plan p, int num_sms) {
  tile_schedule& order = p.schedule;
  order.clusters = std::min(order.tiles(), places_of(p.config, num_sms));
  const double stage = stage_cycles(s, p, p.blocks(), num_sms);
  p.cycles =
      (stage * stages_of(order) + whole_tile_cycles) * ceil_div(order.tiles(), order.clusters);
  return p;
}

/// The last turn, which is not full, and the one before it, in equal shares.
gemm_plan even_shares(const gemm_shape& s, gemm_plan p, int num_sms) {
  tile_schedule& order = p.schedule;
  const int places = places_of(p.config, num_sms);
  const int tiles = order.tiles();
  order.stream_k_tiles = tiles % places + (tiles > places ? places : 0);
  order.clusters = static_cast<int>(std::min<std::int64_t>(
      places, static_cast<std::int64_t>(order.stream_k_tiles) * stages_of(order)));
  const double stage = stage_cycles(s, p, p.blocks(), num_sms);
  const double tile = (stage * stages_of(order) + whole_tile_cycles) / order.clusters;
  // Shares that begin anywhere read the same operands at different times, some from memory again.
  const double again = p.config.swap_ab ? 0 : out_of_step / p.config.block_n;
  // A tile touches at most so many shares.
  const int splits = ceil_div(order.clusters, order.stream_k_tiles) + 1;
  p.cycles = tile * (tiles + again * order.stream_k_tiles) + split_cycles(p.config, splits);
  return p;
}

/// Every tile in the same number of splits: fewer than `even_shares` has, if some blocks idle.
gemm_plan even_splits(const gemm_shape& s, gemm_plan p, int num_sms, int splits) {
  tile_schedule& order = p.schedule;
  order.stream_k_tiles = order.tiles();
  order.clusters = order.tiles() * splits;
  const double stage = stage_cycles(s, p, p.blocks(), num_sms);
  p.cycles = stage * ceil_div(stages_of(order), splits) + whole_tile_cycles +
             split_cycles(p.config, splits);
  if (!p.config.swap_ab) p.cycles *= splits_of_rows;
  return p;
}

/// Every tile by the blocks of a cluster, if all have a place.
gemm_plan shared_in_clusters(const gemm_shape& s, gemm_plan p, int num_sms) {
  const tile_config& c = p.config;
  p.schedule.clusters = p.schedule.tiles();
  const double stage = stage_cycles(s, p, p.blocks(), num_sms);
  const double sent = partial_bytes(c) * (c.cluster_split_k - 1.0) / c.cluster_split_k;
  p.cycles = stage * ceil_div(stages_of(p.schedule), c.cluster_split_k) + whole_tile_cycles +
             sent / joined_bytes_per_cycle;
  return p;
}

}  // namespace

int ranges_of(std::int64_t n, std::int64_t k) {
  // Whatever GPU it is, and however many of its multiprocessors there are for a product.
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
  // The rows of a tile alone are as many as there are.
  if (left == 0 || p.schedule.n_tiles == 1) return {std::numeric_limits<int>::max(), 0};
  return {static_cast<int>(rows) - left, multicast_rows_of(p.config, left)};
}

std::vector<gemm_plan> gemm_plans(const gemm_shape& shape, int num_sms) {
  require_computable(shape);
  std::vector<gemm_plan> plans;
  for (const tile_config& c : gemm_kernels) {
    const int places = places_of(c, num_sms);
    if (places < 1 || (shape.invariant && !adds_in_ranges(shape, c))) continue;
    const gemm_plan p = plan_of(shape, c);
    // The narrower a tile, the sooner reading weights again takes longer than multiplying them.
    if (rereads_weights(p) && c.block_n < 64) continue;
    // There are narrower ones.
    if (c.swap_ab && c.block_n > 128 && 2 * shape.m <= c.block_n) continue;
    const int tiles = p.schedule.tiles();
    if (c.cluster_split_k > 1) {
      if (tiles <= places && stages_of(p.schedule) >= c.cluster_split_k)
        plans.push_back(shared_in_clusters(shape, p, num_sms));
      continue;
    }
    plans.push_back(whole_tiles(shape, p, num_sms));
    if (shape.invariant || !can_cut(p.schedule, std::min(tiles, 2 * places))) continue;
    // Where clusters leave parts of the GPU idle anyway, blocks of their own can share them.
    if (tiles % places != 0 && c.cluster <= 2) plans.push_back(even_shares(shape, p, num_sms));
    const int splits = std::min(places / tiles, stages_of(p.schedule));
    // So many are also what `even_shares` makes, of those that may be cut anywhere.
    if (splits > 1 && (splits * tiles < places || c.cluster > 2))
      plans.push_back(even_splits(shape, p, num_sms, splits));
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

}  // namespace untax::gpu

#include "engines/sm90/gemm/plan.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include <untax/core/error.hpp>

namespace untax::sm90 {
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
  if (!c.deep && c.cluster > 1) return {55, 18, 26};
  return c.cluster == 1 ? read_rates{36.5, 19.7, 21.5} : read_rates{36.5, 20.2, 22};
}

constexpr double out_of_step = 26;           // of 128 columns, 20 %
constexpr double handover_cycles = 2000;     // until another block sees sums
constexpr double sums_bytes_per_cycle = 16;  // into L2 and out of it, few at a time
constexpr double wide_sums_bytes_per_cycle = 12;
constexpr double joined_bytes_per_cycle = 24;  // from block to block of a cluster
constexpr double whole_tile_cycles = 1200;     // to stage results, while nothing is multiplied
/// How much longer it takes where all tiles of rows are cut: all are handed over at the same time.
constexpr double pieces_of_rows = 1.12;

/// Clusters that run at the same time. Of each of the eight parts of a GPU, whose multiprocessors
/// come in pairs, those of four blocks leave two out at most.
int places_of(const tile_config& c, int processors) {
  const int blocks = cluster_blocks(c);
  return blocks <= 2 ? processors / blocks : std::max(processors - 16, 0) / blocks;
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
constexpr int stage_depth(const tile_config& c) { return stage_slices(c) * slice_depth; }
/// Stages in a tile.
constexpr int stages_of(const tile_schedule& order) { return order.slices / order.together; }

/// Cycles of a stage of one block, if so many blocks run.
double stage_cycles(const gemm_shape& s, const gemm_plan& p, int blocks, int processors) {
  const tile_config& c = p.config;
  const double rate_of_math = c.columns == 160 ? products_per_cycle_of_160 : products_per_cycle;
  const double math =
      1.0 * tile_rows(c) * c.columns * stage_depth(c) / rate_of_math + stage_change_cycles;
  // Blocks that do not run leave their share to the others.
  const double share = 1.0 * processors / blocks;
  const read_rates rates = rates_of(c);
  const double l2 = c.deep || c.cluster == 1 ? rates.l2 * share : rates.l2;
  const double read = (tile_rows(c) + p.y_rows) * stage_depth(c) * 2 / l2;
  const double rate = std::min(rates.memory * share, rates.most);
  const double stages = static_cast<double>(p.schedule.tiles()) * stages_of(p.schedule) * c.cluster;
  const double operands = static_cast<double>((s.m + s.n) * s.k * 2);
  return std::max({math, read, operands / stages / rate});
}

/// What cutting tiles costs, if each is shared by `pieces` clusters.
double cutting_cycles(const tile_config& c, int pieces) {
  const double rate = c.swapped ? sums_bytes_per_cycle : wide_sums_bytes_per_cycle;
  return handover_cycles + (pieces - 1) * partial_bytes(c) / rate;
}

/// How many rows of y each block reads. Rows that do not exist would come as zeros, and slowly; so
/// where one tile has all of y, what is below them is left as it was: it ends up in no element of
/// C.
int read_rows(const tile_config& c, std::int64_t y) {
  constexpr std::int64_t swizzled_rows = 8;
  const std::int64_t all = std::min<std::int64_t>(y, c.columns);
  return static_cast<int>(round_up(ceil_div<std::int64_t>(all, c.cluster), swizzled_rows));
}

/// The tiles of a shape, none of them given to anybody yet.
gemm_plan plan_of(const gemm_shape& s, const tile_config& c) {
  const std::int64_t x = c.swapped ? s.n : s.m;
  const std::int64_t y = c.swapped ? s.m : s.n;
  gemm_plan p;
  p.config = c;
  p.schedule.x_tiles = static_cast<int>(ceil_div<std::int64_t>(x, tile_rows(c) * c.cluster));
  p.schedule.y_tiles = static_cast<int>(ceil_div<std::int64_t>(y, c.columns));
  p.schedule.together = stage_slices(c);
  p.schedule.slices =
      static_cast<int>(ceil_div<std::int64_t>(s.k, stage_depth(c))) * p.schedule.together;
  p.schedule.part_slices = p.schedule.slices;
  p.y_rows = read_rows(c, y);
  return p;
}

/// Whether a schedule can count what is cut, see tile_schedule.
bool can_cut(const tile_schedule& order, int tiles) {
  return static_cast<std::int64_t>(tiles) * stages_of(order) <=
         std::numeric_limits<std::int32_t>::max();
}

/// Every tile whole.
gemm_plan whole_tiles(const gemm_shape& s, gemm_plan p, int processors) {
  tile_schedule& order = p.schedule;
  order.clusters = std::min(order.tiles(), places_of(p.config, processors));
  const double stage = stage_cycles(s, p, p.blocks(), processors);
  p.cycles =
      (stage * stages_of(order) + whole_tile_cycles) * ceil_div(order.tiles(), order.clusters);
  return p;
}

/// The last turn, which is not full, and the one before it, in equal shares.
gemm_plan even_shares(const gemm_shape& s, gemm_plan p, int processors) {
  tile_schedule& order = p.schedule;
  const int places = places_of(p.config, processors);
  const int tiles = order.tiles();
  order.streamed = tiles % places + (tiles > places ? places : 0);
  order.clusters = static_cast<int>(
      std::min<std::int64_t>(places, static_cast<std::int64_t>(order.streamed) * stages_of(order)));
  const double stage = stage_cycles(s, p, p.blocks(), processors);
  const double tile = (stage * stages_of(order) + whole_tile_cycles) / order.clusters;
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
  const double stage = stage_cycles(s, p, p.blocks(), processors);
  p.cycles = stage * ceil_div(stages_of(order), pieces) + whole_tile_cycles +
             cutting_cycles(p.config, pieces);
  if (!p.config.swapped) p.cycles *= pieces_of_rows;
  return p;
}

/// Every tile by the blocks of a cluster, if all have a place.
gemm_plan shared_in_clusters(const gemm_shape& s, gemm_plan p, int processors) {
  const tile_config& c = p.config;
  p.schedule.clusters = p.schedule.tiles();
  const double stage = stage_cycles(s, p, p.blocks(), processors);
  const double sent = partial_bytes(c) * (c.pieces - 1.0) / c.pieces;
  p.cycles = stage * ceil_div(stages_of(p.schedule), c.pieces) + whole_tile_cycles +
             sent / joined_bytes_per_cycle;
  return p;
}

}  // namespace

const std::vector<tile_config>& tile_configs() {
  static const std::vector<tile_config> all = {
#define UNTAX_KERNEL(name, ...) {__VA_ARGS__},
#include "engines/sm90/gemm/kernels.def"
#undef UNTAX_KERNEL
  };
  return all;
}

std::vector<gemm_plan> gemm_plans(const gemm_shape& shape, int processors) {
  require_computable(shape);
  std::vector<gemm_plan> plans;
  for (const tile_config& c : tile_configs()) {
    const int places = places_of(c, processors);
    if (places < 1) continue;
    const gemm_plan p = plan_of(shape, c);
    // Several times the same weights, at different moments, would be read from memory as often.
    if (c.swapped && p.schedule.y_tiles > 1) continue;
    const int tiles = p.schedule.tiles();
    if (c.pieces > 1) {
      if (tiles <= places && stages_of(p.schedule) >= c.pieces)
        plans.push_back(shared_in_clusters(shape, p, processors));
      continue;
    }
    plans.push_back(whole_tiles(shape, p, processors));
    if (!can_cut(p.schedule, std::min(tiles, 2 * places))) continue;
    // Where clusters leave parts of the GPU idle anyway, blocks of their own can share them.
    if (tiles % places != 0 && c.cluster <= 2) plans.push_back(even_shares(shape, p, processors));
    const int pieces = std::min(places / tiles, stages_of(p.schedule));
    // So many are also what `even_shares` makes, of those that may be cut anywhere.
    if (pieces > 1 && (pieces * tiles < places || c.cluster > 2))
      plans.push_back(even_pieces(shape, p, processors, pieces));
  }
  std::ranges::stable_sort(plans, {}, &gemm_plan::cycles);
  return plans;
}

std::string gemm_plan::text() const {
  return fmt::format(
      "{} rows of {} by {} of {}, clusters of {}{}, {} stages; {} x {} tiles{}", tile_rows(config),
      config.swapped ? "B" : "A", config.columns, config.swapped ? "A" : "B",
      cluster_blocks(config),
      config.pieces > 1 ? fmt::format(", {} to a tile", config.pieces) : std::string(),
      config.stages, schedule.x_tiles, schedule.y_tiles,
      schedule.streamed > 0
          ? fmt::format(", {} of them shared by {} clusters", schedule.streamed, schedule.clusters)
          : std::string());
}

void refuse_plan(std::string_view operator_name, int rank, std::int64_t rows, int workers,
                 int processors, const std::function<bool(int, int)>& possible) {
  constexpr int most_processors = 256;  // more than any GPU has
  std::string why = fmt::format("with so few blocks (option workers is {})", workers);
  int least = workers + 1;
  while (workers > 0 && least <= processors && !possible(least, processors)) ++least;
  if (workers == 0 || least > processors) {
    why = fmt::format("with the {} multiprocessors that the rank has of its GPU", processors);
    least = processors + 1;
    while (least <= most_processors && !possible(0, least)) ++least;
  }
  throw error(
      errc::unsupported,
      fmt::format("rank {}: {}: no kernel multiplies {} rows {}{}", rank, operator_name, rows, why,
                  least <= most_processors ? fmt::format("; {} would do", least) : ""));
}

}  // namespace untax::sm90

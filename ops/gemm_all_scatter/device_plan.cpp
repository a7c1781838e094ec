#include "ops/gemm_all_scatter/device_plan.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <untax/tile/shard.hpp>

#include "engines/gpu/copy/block_share.hpp"
#include "engines/gpu/gemm/config.hpp"
#include "engines/gpu/gemm/variant.hpp"
#include "ops/common/plan_agreement.hpp"
#include "ops/common/planning.hpp"

namespace untax {
namespace {

constexpr int least_moving = 4;
constexpr int most_moving = 16;
constexpr int usual_streams = 2;  // while one begins its next copy, the other is on its way
constexpr int most_row_splits = 16;
/// A row split's rows are those of whole tiles.
constexpr std::int64_t split_unit = 256;

/// How many blocks may be those that only move: pairs, as clusters of blocks start together.
std::vector<int> numbers_of_senders(const operator_options& options, int num_sms) {
  const int most = (num_sms - 2) / 2 * 2;
  if (options.senders > 0 && most > 0) return {std::min(round_up(options.senders, 2), most)};
  std::vector<int> numbers;
  for (int moving = least_moving; moving <= std::min(most_moving, most); moving += 2)
    numbers.push_back(moving);
  return numbers;
}

/// Where tiles are whole C columns of weights, a tile of the protocol is what one block multiplies.
void cut(scatter_plan& plan) {
  const gpu::tile_config& c = plan.gemm.config;
  plan.protocol.tile_m = c.swap_ab ? c.block_n : tile_rows(c);
  plan.protocol.tile_n = c.swap_ab ? tile_rows(c) : c.block_n;
  plan.parts = storing_warpgroups(c);
  // Where x is A, as many rows of tiles are multiplied before those below them; elsewhere the order
  // of numbers is as good, as there are few rows.
  if (plan.way == scatter_way::tile_flags && !c.swap_ab)
    plan.protocol.raster_rows = plan.gemm.schedule.raster_group * c.cluster;
}

/// Where all of a shard leaves at once, a block has one tile of it, and as few blocks as there is
/// work for have any.
void chunk_bulk(std::int64_t rows, std::int64_t columns, scatter_plan& plan) {
  constexpr std::int64_t unit = 64;
  const gpu::block_share share = gpu::share_of_block(rows, columns, plan.own_grid, unit);
  plan.protocol.tile_m = share.rows;
  plan.protocol.tile_n = share.columns;
  plan.protocol.senders = plan.own_grid = share.count;
}

/// The plans of GEMMs of so many rows each, of a full shard: all ranks have the same, also those
/// whose shard is short, or empty.
void add_plans(const gemm_all_scatter_problem& problem, const scatter_plan& made, int free,
               std::int64_t rows, bool invariant, std::vector<scatter_plan>& plans) {
  const int world = made.protocol.world;
  const std::int64_t columns = sharding{problem.n, world, shard_granularity}.full();
  for (const gpu::gemm_plan& gemm :
       gpu::gemm_plans({rows, columns, problem.k, problem.type, invariant}, free)) {
    const auto config = gpu::compiled_for(gpu::scatter_kernels, gemm.config);
    if (!config || gpu::rereads_weights(gemm)) continue;
    scatter_plan plan = made;
    plan.gemm = gemm;
    plan.gemm.config = *config;
    cut(plan);
    if (plan.way == scatter_way::local_only && plan.own_grid > 0)
      chunk_bulk(problem.m, columns, plan);
    if (plan.streams > 0) {
      // What DMA engines send at a time is a tile to the program.
      plan.protocol.tile_m = rows;
      plan.protocol.tile_n = columns;
    }
    plan.split_rows = rows;
    plan.row_splits = static_cast<int>(ceil_div(problem.m, rows));
    if (plan.way == scatter_way::store_to_peers)
      plan.gemm.cycles = drain_cycles_of_epilogue(plan.gemm, world);
    if (plan.way == scatter_way::tile_flags)
      plan.gemm.cycles = drain_cycles_of_senders(plan.gemm, plan.comm_ctas + plan.own_grid, world);
    if (plan.streams > 0)
      plan.gemm.cycles = drain_cycles_of_copies(plan.gemm, plan.row_splits, world);
    plans.push_back(plan);
  }
}

/// Plans in which blocks move tiles as these are flagged: so many of the kernel that multiplies, or
/// of another one.
std::vector<scatter_plan> tile_flags_plans(const gemm_all_scatter_problem& problem,
                                           const scatter_plan& made,
                                           const operator_options& options, int num_sms) {
  std::vector<scatter_plan> plans;
  for (const int moving : numbers_of_senders(options, num_sms)) {
    scatter_plan plan = made;
    (options.how == pattern::producer_consumer ? plan.own_grid : plan.comm_ctas) = moving;
    plan.protocol.senders = moving;
    const int free = num_sms - moving;
    add_plans(problem, plan, options.workers > 0 ? std::min(free, options.workers) : free,
              problem.m, options.invariant, plans);
  }
  return plans;
}

/// Empty where no kernel can multiply.
std::vector<scatter_plan> possible_plans(const gemm_all_scatter_problem& problem, int world,
                                         int rank, const operator_options& options, int num_sms) {
  scatter_plan made;
  made.protocol.world = world;
  made.protocol.rank = rank;
  if (options.varying_rows) made.protocol.capacity = problem.m;
  int free = num_sms;
  switch (options.how) {
    case pattern::fused_specialized:
    case pattern::producer_consumer:
      made.way = scatter_way::tile_flags;
      break;
    case pattern::bulk_synchronous:
      made.way = scatter_way::local_only;
      made.own_grid = options.senders > 0 ? std::min(options.senders, num_sms) : num_sms;
      break;
    case pattern::copy_engine:
      made.way = scatter_way::local_only;
      made.streams = options.senders > 0 ? options.senders : usual_streams;
      made.protocol.senders = made.streams;
      // Who waits for the peers needs a place beside those that multiply.
      free -= 2;
      break;
    default:
      break;
  }
  // To the protocol, tiles that are flagged pass from one kernel to another, and those that a block
  // sends itself do not.
  made.protocol.how = made.way == scatter_way::tile_flags       ? pattern::producer_consumer
                      : made.way == scatter_way::store_to_peers ? pattern::fused_sequential
                      : made.streams > 0                        ? pattern::copy_engine
                                                                : pattern::bulk_synchronous;
  if (options.workers > 0) free = std::min(free, options.workers);
  std::vector<scatter_plan> plans;
  if (made.way == scatter_way::tile_flags) {
    plans = tile_flags_plans(problem, made, options, num_sms);
  } else {
    add_plans(problem, made, free, problem.m, options.invariant, plans);
  }
  for (int row_splits = 2; made.streams > 0 && row_splits <= most_row_splits && !plans.empty();
       ++row_splits) {
    const std::int64_t rows = round_up(ceil_div<std::int64_t>(problem.m, row_splits), split_unit);
    if (rows < plans.back().split_rows)
      add_plans(problem, made, free, rows, options.invariant, plans);
  }
  std::ranges::stable_sort(plans, {}, [](const scatter_plan& p) { return p.gemm.cycles; });
  return plans;
}

}  // namespace

std::vector<scatter_plan> scatter_plans(const gemm_all_scatter_problem& problem, int world,
                                        int rank, const operator_options& options, int num_sms) {
  return plans_or_refusal("gemm_all_scatter", rank, problem.m, options, num_sms,
                          [&](const operator_options& with, int of) {
                            return possible_plans(problem, world, rank, with, of);
                          });
}

std::string scatter_plan::text() const {
  const auto senders = [&]() -> std::string {
    switch (way) {
      case scatter_way::store_to_peers:
        return "blocks send their tiles";
      case scatter_way::tile_flags:
        return comm_ctas > 0
                   ? fmt::format("{} blocks send flagged tiles", comm_ctas)
                   : fmt::format("{} blocks of another kernel send flagged tiles", own_grid);
      case scatter_way::local_only:
        break;
    }
    return own_grid > 0 ? fmt::format("{} blocks of another kernel send all tiles", own_grid)
                        : fmt::format("copy engines send, on {} streams, {} times {} rows", streams,
                                      row_splits, split_rows);
  };
  return fmt::format("{}; {}", senders(), gemm.text());
}

plan_lines scatter_plan::agreed() const {
  const auto& [as_program, as_gemm, placement, communication_ctas, apart, dma_streams,
               parts_of_tile, splits, rows_of_split] = *this;
  return {
      fmt::format("placement {}, communication CTAs {}, CTAs of their own grid {}, DMA streams {}, "
                  "parts of a tile {}, row splits {}, rows of a split {}",
                  static_cast<int>(placement), communication_ctas, apart, dma_streams,
                  parts_of_tile, splits, rows_of_split),
      fields_of(as_program), fields_of(as_gemm)};
}

}  // namespace untax

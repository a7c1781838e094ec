#include "ops/gemm_all_scatter/device_plan.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <untax/tile/shard.hpp>

#include "engines/gpu/copy/block_share.hpp"
#include "engines/gpu/gemm/config.hpp"
#include "engines/gpu/gemm/kernels.hpp"
#include "ops/common/plan_agreement.hpp"
#include "ops/common/planning.hpp"

namespace untax {
namespace {

constexpr int least_moving = 4;
constexpr int most_moving = 16;
constexpr int usual_streams = 2;  // one stream begins its next copy while the other transfers
constexpr int most_row_splits = 16;
/// The rows of a row split are a multiple of this: whole tiles.
constexpr std::int64_t split_unit = 256;

// Bytes per cycle of 1755 MHz that leave a rank, measured on H200.
constexpr double link_bytes_per_cycle = 188;  // out of a rank
// Cycles of a block that sends TMA tiles beside a GEMM: to read a byte, and to store it to a peer.
constexpr double read_cycles_per_byte = 0.03;
constexpr double store_cycles_per_byte = 0.033;
constexpr double between_kernels = 3500;  // from the last result to the next one's first k-block
constexpr double to_begin_a_copy = 7000;  // from the end of a kernel

/// The number of tiles that each cluster finishes.
int rounds_of(const gpu::tile_schedule& order) {
  return std::max(ceil_div(order.tiles(), order.clusters), 1);
}

/// Cycles to send the results of `tiles` tiles, at a rate in bytes per cycle.
double sending(const gpu::gemm_plan& plan, int world, int tiles,
               double rate = link_bytes_per_cycle) {
  const double tile = 2.0 * tile_rows(plan.config) * plan.config.block_n * plan.config.cluster;
  return tiles * tile * (world - 1) / rate;
}

/// Cycles until the last results have left a rank, at this rate.
double last_left(const gpu::gemm_plan& plan, int world, double rate) {
  const gpu::tile_schedule& order = plan.schedule;
  const double round = plan.cycles / rounds_of(order);
  const int whole = order.whole_tiles();
  double free = 0;  // when all results finished so far have been sent
  double now = 0;
  for (int tile = 0; tile < whole; tile += order.clusters) {
    now += round;
    free = std::max(free, now) + sending(plan, world, std::min(order.clusters, whole - tile), rate);
  }
  // Tiles that clusters share (stream-K) are all finished at the end.
  return std::max(free, plan.cycles) + sending(plan, world, order.stream_k_tiles, rate);
}

/// Cycles until the last results of a plan have left, if they are sent as tiles are finished: by
/// the blocks that multiply, or by senders.
double drain_cycles(const scatter_plan& plan, int world) {
  if (plan.way == scatter_way::store_to_peers)
    return last_left(plan.gemm, world, link_bytes_per_cycle);
  const int peers = std::max(world - 1, 1);
  const double block = peers / (read_cycles_per_byte + peers * store_cycles_per_byte);
  const int moving = plan.comm_ctas + plan.own_grid;
  return last_left(plan.gemm, world, std::min(moving * block, link_bytes_per_cycle));
}

class planner {
 public:
  planner(const gemm_all_scatter_problem& problem, int world, int rank,
          const operator_options& options, const gpu::gpu_model& gpu)
      : problem_(problem),
        options_(options),
        gpu_(gpu),
        columns_(sharding{problem.n, world, shard_granularity}.full()) {
    made_.protocol.world = world;
    made_.protocol.rank = rank;
    if (options.varying_rows) made_.protocol.capacity = problem.m;
  }

  /// The plans; none if no kernel can compute the problem.
  std::vector<scatter_plan> make() {
    int free = gpu_.num_sms;
    protocol_plan& p = made_.protocol;
    // In the protocol, flagged tiles pass from one kernel to another; tiles that a block sends
    // itself do not.
    switch (options_.how) {
      case pattern::fused_specialized:
      case pattern::producer_consumer:
        made_.way = scatter_way::tile_flags;
        p.how = pattern::producer_consumer;
        add_with_senders();
        break;
      case pattern::bulk_synchronous:
        made_.way = scatter_way::local_only;
        p.how = pattern::bulk_synchronous;
        made_.own_grid =
            options_.senders > 0 ? std::min(options_.senders, gpu_.num_sms) : gpu_.num_sms;
        add(made_, free, problem_.m);
        break;
      case pattern::copy_engine:
        made_.way = scatter_way::local_only;
        p.how = pattern::copy_engine;
        p.senders = made_.streams = options_.senders > 0 ? options_.senders : usual_streams;
        // The block that waits for peers needs a place beside those that multiply.
        free -= 2;
        add(made_, free, problem_.m);
        add_row_splits(free);
        break;
      default:
        p.how = pattern::fused_sequential;
        add(made_, free, problem_.m);
    }
    std::ranges::stable_sort(plans_, {}, [](const scatter_plan& made) { return made.gemm.cycles; });
    return std::move(plans_);
  }

 private:
  /// Plans with blocks that send flagged tiles: in the GEMM kernel, or in a kernel of their own.
  /// Their number is even, as clusters of blocks start together.
  void add_with_senders() {
    const int most = most_beside(gpu_.num_sms);
    const int asked = most > 0 ? options_.senders : 0;
    const int first = asked > 0 ? std::min(round_up(asked, 2), most) : least_moving;
    const int last = asked > 0 ? first : std::min(most_moving, most);
    for (int moving = first; moving <= last; moving += 2) {
      scatter_plan plan = made_;
      (options_.how == pattern::producer_consumer ? plan.own_grid : plan.comm_ctas) = moving;
      plan.protocol.senders = moving;
      add(plan, gpu_.num_sms - moving, problem_.m);
    }
  }
  void add_row_splits(int free) {
    for (int row_splits = 2; row_splits <= most_row_splits && !plans_.empty(); ++row_splits) {
      const std::int64_t rows =
          round_up(ceil_div<std::int64_t>(problem_.m, row_splits), split_unit);
      if (rows < plans_.back().split_rows) add(made_, free, rows);
    }
  }

  /// Adds plans with GEMMs of `rows` rows and a full shard: the same at all ranks, even if their
  /// shard is short or empty.
  void add(const scatter_plan& made, int free, std::int64_t rows) {
    const int world = made.protocol.world;
    for (const gpu::gemm_plan& gemm : plans_with_wide_tiles(
             gpu::scatter_kernels, {rows, columns_, problem_.k, problem_.type, options_.invariant},
             {multiplying(options_, free), gpu_.costs}, gpu::registers_with_peers)) {
      scatter_plan& plan = plans_.emplace_back(made);
      plan.gemm = gemm;
      plan.rows = gpu::capacity_of(gemm, options_.varying_rows && !options_.invariant);
      plan.split_rows = rows;
      plan.row_splits = static_cast<int>(ceil_div(problem_.m, rows));
      cut(plan);
      if (plan.way != scatter_way::local_only) plan.gemm.cycles = drain_cycles(plan, world);
      if (plan.streams > 0)
        plan.gemm.cycles = drain_cycles_of_copies(plan.gemm, plan.row_splits, world);
    }
  }

  /// If senders send flagged tiles, a tile of the protocol is the tile of one block.
  void cut(scatter_plan& plan) const {
    const gpu::tile_config& c = plan.gemm.config;
    protocol_plan& p = plan.protocol;
    plan.parts = storing_warpgroups(c);
    p.tile_m = c.swap_ab ? c.block_n : tile_rows(c);
    p.tile_n = c.swap_ab ? tile_rows(c) : c.block_n;
    // Without swap_ab the tiles of a raster group are multiplied before those below them. With
    // swap_ab the order of their numbers is as good, since there are few rows.
    if (plan.way == scatter_way::tile_flags && !c.swap_ab)
      p.raster_rows = plan.gemm.schedule.raster_group * c.cluster;
    if (plan.way != scatter_way::local_only) return;
    if (plan.streams > 0) {
      // In the protocol a tile is the part that DMA engines send at a time.
      p.tile_m = plan.split_rows;
      p.tile_n = columns_;
      return;
    }
    // The whole shard is sent at once: a block has one tile of the shard, and there are no more
    // blocks than tiles.
    constexpr std::int64_t unit = 64;
    const gpu::block_share share = gpu::share_of_block(problem_.m, columns_, plan.own_grid, unit);
    p.tile_m = share.rows;
    p.tile_n = share.columns;
    p.senders = plan.own_grid = share.count;
  }

  const gemm_all_scatter_problem& problem_;
  const operator_options& options_;
  gpu::gpu_model gpu_;
  std::int64_t columns_;
  scatter_plan made_;
  std::vector<scatter_plan> plans_;
};

}  // namespace

double drain_cycles_of_copies(const gpu::gemm_plan& plan, int row_splits, int world) {
  const double row_split = sending(plan, world, plan.schedule.tiles());
  double free = 0;
  double now = 0;
  for (int i = 0; i < row_splits; ++i) {
    now += plan.cycles + between_kernels;
    free = std::max(free, now + to_begin_a_copy) + row_split;
  }
  return free;
}

std::vector<scatter_plan> scatter_plans(const gemm_all_scatter_problem& problem, int world,
                                        int rank, const operator_options& options,
                                        const gpu::gpu_model& gpu) {
  return plans_or_refusal("gemm_all_scatter", rank, problem.m, options, gpu.num_sms,
                          [&](const operator_options& with, int num_sms) {
                            return planner(problem, world, rank, with, {num_sms, gpu.costs}).make();
                          });
}

void scatter_plan::set_rows(std::int64_t of_run) {
  if (way == scatter_way::tile_flags || row_splits > 1) return;
  gemm.schedule = gpu::schedule_of_rows(gemm.config, rows, of_run);
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
  const auto& [as_program, as_gemm, rows_of_runs, placement, communication_ctas, apart, dma_streams,
               parts_of_tile, splits, rows_of_split] = *this;
  return {
      fmt::format("placement {}, communication CTAs {}, CTAs of their own grid {}, DMA streams {}, "
                  "parts of a tile {}, row splits {}, rows of a split {}",
                  static_cast<int>(placement), communication_ctas, apart, dma_streams,
                  parts_of_tile, splits, rows_of_split),
      fields_of(as_program), fields_of(as_gemm)};
}

}  // namespace untax

#include "ops/all_gather_gemm/device_plan.hpp"

#include <algorithm>
#include <limits>
#include <span>

#include <fmt/format.h>

#include <untax/tile/order.hpp>

#include "engines/gpu/gemm/config.hpp"
#include "engines/gpu/gemm/kernels.hpp"
#include "ops/all_gather_gemm/layout.hpp"
#include "ops/common/plan_agreement.hpp"
#include "ops/common/planning.hpp"
#include "ops/common/row_plans.hpp"

namespace untax {
namespace {

/// Rows that a block multiplies, and that a cluster of two blocks multiplies, without swap_ab.
constexpr std::int64_t block_rows = tile_rows(gpu::tile_config{});
constexpr std::int64_t tall_rows = 2 * block_rows;
/// Up to this many rows kernels have swap_ab, and A has to lie in one place.
constexpr std::int64_t most_short_rows = 128;
/// A tile has rows of one source. If padding makes the GEMM larger by this factor, A is collected.
constexpr double most_waste = 1.12;
constexpr std::int64_t most_collected_rows = 4096;

constexpr int usual_comm_ctas = 8;
constexpr int least_moving = 4;  // the fewest blocks that send TMA tiles
constexpr int most_comm_ctas = 20;
constexpr double worth_moving = 1.01;  // the factor by which more senders may prolong the GEMM
constexpr int usual_own_grid = 16;
constexpr int usual_streams = 1;  // copies run in order: the chunks that tiles need first come
                                  // first

/// In a kernel that only sends TMA tiles, 16 blocks fill the link. All have to end together, so
/// each has as many TMA tiles as its ring holds: one more or less then matters little. More than 64
/// blocks would only take places in which blocks of the GEMM could get ready.
constexpr int least_alone = 16;
constexpr int most_alone = 64;
constexpr std::int64_t tma_tiles_alone = 6;

/// The most rows that go in packets: those of the smallest tile. Every block reads all packets of
/// its k-blocks, and half of the bytes of a packet are its epoch. With gather = k the rank's own
/// columns are multiplied while chunks arrive.
constexpr std::int64_t packet_rows = 16;
/// So that the number of a packet has 32 bits.
constexpr std::int64_t most_packet_elements = std::int64_t{1} << 30;
/// A rank that sends at least this many bytes sends them as TMA tiles.
constexpr std::int64_t least_boxed_bytes = std::int64_t{8} << 20;

/// The factor by which padding enlarges a GEMM of `m` rows, if each of `parts` sources has `rows`
/// rows.
double waste_of(std::int64_t m, std::int64_t parts, std::int64_t rows) {
  return static_cast<double>(parts * rows) / static_cast<double>(round_up(m, tall_rows));
}

/// Rows of tiles of `parts` sources with equally many rows, in the order of sources, in which rows
/// arrive. Tiles are whole clusters, or smaller where the blocks of a cluster may have rows of
/// different sources; all sources together then fill clusters.
struct segment_heights {
  segment_heights(std::int64_t parts, std::int64_t rows)
      : whole(round_up(rows, tall_rows)), halves(round_up(rows, block_rows)) {
    if (parts * halves % tall_rows != 0) halves = whole;
  }
  std::int64_t whole;
  std::int64_t halves;
};

/// Tiles of a source are multiplied before those of the next source, if sources have whole tiles,
/// and enough of them that the weights are not read too often.
void order_by_source(gather_plan& plan) {
  constexpr int least_group = 4;
  gpu::tile_schedule& order = plan.gemm.schedule;
  const int tiles = plan.segment_rows / static_cast<int>(tall_rows);
  const bool is_whole = tiles * tall_rows == plan.segment_rows;
  order.segments = tiles > 0 && is_whole ? static_cast<int>(plan.sources.size()) : 1;
  if (!is_whole && tiles >= least_group) order.raster_group = std::min(order.raster_group, tiles);
}

/// Bytes that a rank sends to all peers together.
std::int64_t sent_bytes_of(const all_gather_gemm_problem& problem, int world) {
  return a_shard_of(problem, world, 0).elements() * 2 * (world - 1);
}

class planner {
 public:
  planner(const all_gather_gemm_problem& problem, int world, int rank,
          const operator_options& options, int num_sms)
      : problem_(problem), options_(options), num_sms_(num_sms) {
    made_.protocol.world = world;
    made_.protocol.rank = rank;
    // The shards are those of a run with the most rows, so that the list of every rank contains the
    // chunks of any run.
    if (options.varying_rows)
      made_.protocol.capacity = by_rows() ? round_up<std::int64_t>(problem.m, world) : problem.m;
    // In the protocol, senders are beside one worker: in its kernel, or in a kernel of their own.
    const bool own_grid = concurrent() || bulk();
    const pattern placement = own_grid ? pattern::producer_consumer : pattern::fused_specialized;
    // The placement of the protocol's senders, not the operator's pattern.
    made_.protocol.how = placement;
    made_.protocol.senders_acquire = bulk();
    if (options.how == pattern::fused_specialized || concurrent())
      made_.protocol.move = options.move;
  }

  /// The plans; none if no kernel can compute the problem.
  std::vector<gather_plan> make() {
    if (moves_beside() && most_beside(num_sms_) < 2) return {};
    choose_senders();
    choose_segments();
    std::vector<gather_plan> plans;
    if (made_.tma_tiles && options_.senders == 0 && !bulk()) {
      const int most = std::min(most_comm_ctas, most_beside(num_sms_));
      // Of plans with the same time, the one with the fewest senders comes first: the more TMA
      // tiles are in flight, the later the first one of a block arrives.
      for (int moving = least_moving; moving <= most; moving += 2) add(plans, moving);
    } else {
      add(plans, made_.comm_ctas + made_.own_grid);
    }
    std::ranges::stable_sort(plans, {}, [](const gather_plan& p) { return p.gemm.cycles; });
    return plans;
  }

 private:
  [[nodiscard]] bool by_rows() const { return problem_.gather == gather_axis::rows; }
  /// The sharding of the run with the most rows.
  [[nodiscard]] sharding shards() const {
    const std::int64_t most = std::max(made_.protocol.capacity, problem_.m);
    return a_sharding(with_rows(problem_, most), made_.protocol.world);
  }
  [[nodiscard]] std::int64_t sent_bytes() const {
    return sent_bytes_of(problem_, made_.protocol.world);
  }
  /// Adds plans with `moving` blocks that only send.
  void add(std::vector<gather_plan>& plans, int moving) const {
    gather_plan begun = made_;
    if (begun.comm_ctas > 0) begun.comm_ctas = moving;
    if (begun.own_grid > 0) begun.own_grid = moving;
    const int free = num_sms_ - begun.comm_ctas - (concurrent() ? begun.own_grid : 0);
    using kernel_list = std::span<const gpu::tile_config>;
    const auto kernels =
        begun.packets ? kernel_list(gpu::packet_kernels) : kernel_list(gpu::gather_kernels);
    for (const gpu::gemm_plan& gemm :
         compiled_plans(kernels, shape(), multiplying(options_, free))) {
      if ((begun.segment_rows > 0 && gemm.config.swap_ab) || !can_follow(gemm)) continue;
      if (begun.comm_ctas % cluster_blocks(gemm.config) != 0) continue;
      if (part_k_blocks(gemm) < gemm.config.cluster_split_k * gemm.schedule.k_blocks_per_stage)
        continue;
      gather_plan& plan = plans.emplace_back(begun);
      plan.gemm = gemm;
      plan.gemm.schedule.part_k_blocks = part_k_blocks(gemm);
      order_by_source(plan);
      plan.rows = gpu::capacity_of(plan.gemm, options_.varying_rows && !options_.invariant);
      cut_chunks(plan, problem_, options_);
      if (!bulk()) plan.gemm.cycles = overlapped_cycles(plan, static_cast<double>(sent_bytes()));
    }
  }
  /// The part of k with which the blocks that share a tile begin: with gather = k the rank's own
  /// columns.
  [[nodiscard]] int part_k_blocks(const gpu::gemm_plan& gemm) const {
    return by_rows() ? gemm.schedule.k_blocks : made_.segment_k_blocks;
  }
  /// Whether A arrives in the order in which a kernel adds: chunk by chunk. With gather = k all
  /// blocks begin with the rank's own columns.
  [[nodiscard]] bool can_follow(const gpu::gemm_plan& gemm) const {
    if (gemm.schedule.range_k_blocks == 0) return true;
    if (gemm.config.warpgroup_split_k) return false;
    return adds_ranges(gemm.config, gpu::registers_with_peers) ||
           (gemm.config.cluster_split_k > 1 && by_rows());
  }
  [[nodiscard]] bool moves_beside() const {
    return concurrent() || options_.how == pattern::fused_specialized;
  }
  [[nodiscard]] bool concurrent() const { return options_.how == pattern::producer_consumer; }
  [[nodiscard]] bool bulk() const { return options_.how == pattern::bulk_synchronous; }

  void choose_senders() {
    const int asked = options_.senders;
    switch (options_.how) {
      case pattern::fused_specialized:
        made_.who = gather_senders::comm_ctas;
        made_.tma_tiles = goes_by_tma();
        // An even number, because clusters of blocks start together.
        made_.comm_ctas =
            std::min(asked > 0 ? round_up(asked, 2) : idle_blocks(), most_beside(num_sms_));
        break;
      case pattern::fused_sequential:
        made_.who = gather_senders::all_ctas_first;
        break;
      case pattern::fused_warp_specialized:
        made_.who = gather_senders::warps;
        break;
      case pattern::producer_consumer:
        made_.tma_tiles = goes_by_tma();
        made_.own_grid =
            std::min(asked > 0 ? round_up(asked, 2) : usual_own_grid, most_beside(num_sms_));
        break;
      case pattern::copy_engine:
        made_.streams = asked > 0 ? asked : usual_streams;
        made_.protocol.sets = 1;  // addresses in a captured graph are the same in every run
        made_.protocol.reserves_next = true;
        break;
      default:
        made_.tma_tiles = goes_by_tma();
        made_.own_grid = asked > 0 ? asked : made_.tma_tiles ? blocks_alone() : num_sms_;
        // An even number, so that clusters of two blocks of the GEMM fit where these blocks end.
        made_.own_grid = made_.tma_tiles ? std::min(round_up(made_.own_grid, 2), num_sms_ / 2 * 2)
                                         : std::min(made_.own_grid, num_sms_);
    }
    // Packets are sent by the GEMM kernel, whose warpgroups split k.
    made_.packets = !options_.invariant && made_.who != gather_senders::elsewhere && by_rows() &&
                    made_.protocol.move == direction::push && problem_.m <= packet_rows &&
                    problem_.m * problem_.k <= most_packet_elements;
  }

  /// The number of communication CTAs that hardly prolong the GEMM; the usual number at least.
  [[nodiscard]] int idle_blocks() const {
    const gpu::gemm_shape whole{problem_.m, problem_.n, problem_.k, problem_.type,
                                options_.invariant};
    const auto cycles = [&](int comm_ctas) {
      for (const gpu::gemm_plan& plan :
           compiled_plans(gpu::gather_kernels, whole, num_sms_ - comm_ctas))
        if (can_follow(plan) && comm_ctas % cluster_blocks(plan.config) == 0) return plan.cycles;
      return std::numeric_limits<double>::max();
    };
    int comm_ctas = usual_comm_ctas;
    const double most = cycles(comm_ctas) * worth_moving;
    while (comm_ctas < most_comm_ctas && cycles(comm_ctas + 2) <= most) comm_ctas += 2;
    return comm_ctas;
  }

  /// Whether chunks are TMA tiles. If a block has many chunks, TMA is faster. If it has few, TMA is
  /// slower, by the time until another warp has signalled the chunks that have arrived.
  [[nodiscard]] bool goes_by_tma() const {
    return made_.protocol.move == direction::push && sent_bytes() >= least_boxed_bytes;
  }
  /// The blocks of a kernel that only sends. Each block has at most the usual number of TMA tiles:
  /// fewer if there would be too few blocks, more if there would be too many.
  [[nodiscard]] int blocks_alone() const {
    const extent shard = a_shard_of(problem_, made_.protocol.world, 0);
    const std::int64_t tma_tiles =
        ceil_div(shard.rows, tma_tile_rows) * ceil_div(shard.cols, tma_tile_columns);
    const std::int64_t least = ceil_div<std::int64_t>(tma_tiles, std::min(most_alone, num_sms_));
    const std::int64_t usual = std::min(tma_tiles / least_alone, tma_tiles_alone);
    return static_cast<int>(ceil_div(tma_tiles, std::max(least, usual)));
  }
  void choose_segments() {
    const sharding split = shards();
    for (int hop = 0; hop < split.parts; ++hop) {
      const int source = source_at_hop(made_.protocol.rank, hop, split.parts);
      if (!split.of(source).empty()) made_.sources.push_back(source);
    }
    const auto parts = static_cast<std::int64_t>(made_.sources.size());
    if (!by_rows()) {
      made_.segment_k_blocks =
          static_cast<int>(round_up(ceil_div<std::int64_t>(split.full(), gpu::block_k),
                                    std::int64_t{gpu::most_k_blocks_per_stage}));
      return;
    }
    made_.segment_k_blocks = static_cast<int>(ceil_div<std::int64_t>(problem_.k, gpu::block_k));
    // If whole clusters waste much, clusters have rows of different sources; if these waste much,
    // too, A is collected.
    const segment_heights heights(parts, split.full());
    const bool wastes = waste_of(problem_.m, parts, heights.whole) > most_waste;
    const std::int64_t rows = wastes ? heights.halves : heights.whole;
    if (problem_.m <= most_short_rows ||
        (waste_of(problem_.m, parts, rows) > most_waste && problem_.m <= most_collected_rows)) {
      made_.protocol.gather_own = true;
      made_.sources = {0};
    } else {
      made_.segment_rows = static_cast<int>(rows);
    }
  }

  /// The shape of the GEMM: rows and k-blocks of segments are rounded up.
  [[nodiscard]] gpu::gemm_shape shape() const {
    const auto parts = static_cast<std::int64_t>(made_.sources.size());
    return {made_.segment_rows > 0 ? parts * made_.segment_rows : problem_.m, problem_.n,
            by_rows() ? problem_.k : parts * made_.segment_k_blocks * gpu::block_k, problem_.type,
            options_.invariant};
  }

  all_gather_gemm_problem problem_;
  operator_options options_;
  int num_sms_;
  gather_plan made_;
};

}  // namespace

std::vector<gather_plan> gather_plans(const all_gather_gemm_problem& problem, int world, int rank,
                                      const operator_options& options, int num_sms) {
  return plans_or_refusal("all_gather_gemm", rank, problem.m, options, num_sms,
                          [&](const operator_options& with, int sms) {
                            return planner(problem, world, rank, with, sms).make();
                          });
}

void gather_plan::set_rows(const all_gather_gemm_problem& problem) {
  const gpu::tile_config& c = gemm.config;
  if (segment_rows == 0) {
    gemm.schedule = gpu::schedule_of_rows(c, rows, problem.m);
    return;
  }
  if (c.cluster_split_k > 1) return;
  const auto parts = static_cast<std::int64_t>(sources.size());
  const std::int64_t shard = a_sharding(problem, protocol.world).full();
  // Clusters with rows of different sources wait for the last of these rows: until all have been
  // sent, if no other tile is left to multiply.
  const double late =
      static_cast<double>(sent_bytes_of(problem, protocol.world)) / link_bytes_per_cycle;
  double least_cycles = std::numeric_limits<double>::max();
  const auto consider = [&](std::int64_t high) {
    const auto row_tiles = static_cast<int>(parts * high / tall_rows);
    if (row_tiles > rows.most.m_tiles) return;
    const gpu::run_schedule run = gpu::schedule_of_run(c, rows, row_tiles);
    const double cycles = run.cycles + (high % tall_rows == 0 ? 0 : late);
    if (cycles >= least_cycles) return;
    least_cycles = cycles;
    gemm.schedule = run.order;
    segment_rows = static_cast<int>(high);
  };
  for (const bool whole : {false, true}) {
    const std::int64_t least = gpu::least_row_tiles(c, rows, whole) * tall_rows;
    const segment_heights heights(parts, std::max(shard, ceil_div(least, parts)));
    consider(heights.whole);
    consider(heights.halves);
  }
  order_by_source(*this);
}

std::string gather_plan::text() const {
  const auto senders = [&]() -> std::string {
    switch (who) {
      case gather_senders::comm_ctas:
        return fmt::format("{} blocks move", comm_ctas);
      case gather_senders::all_ctas_first:
        return "all blocks move, then multiply";
      case gather_senders::warps:
        return fmt::format("a warp in each of {} blocks moves", protocol.senders);
      case gather_senders::epilogue_warps:
        return fmt::format("{} warps that store move first", protocol.senders);
      case gather_senders::elsewhere:
        break;
    }
    return own_grid > 0 ? fmt::format("{} blocks of another kernel move", own_grid)
                        : fmt::format("copy engines move, on {} streams", streams);
  };
  const std::string what =
      packets ? "packets"
              : fmt::format("chunks of {} x {}{}", protocol.tile_m, protocol.panel_k,
                            protocol.gather_own ? ", A collected" : "");
  return fmt::format("{} ({}), {}; {}", senders(), name_of(protocol.move), what, gemm.text());
}

plan_lines gather_plan::agreed() const {
  const auto& [as_program, as_gemm, rows_of_runs, placement, communication_ctas, apart, dma_streams,
               by_packets, rate, by_tma_tiles, polled, all_sources, rows_of_segment,
               k_blocks_of_segment] = *this;
  // The sources follow from the rank; their number follows from the plan.
  return {fmt::format(
              "placement {}, communication CTAs {}, CTAs of their own grid {}, DMA streams {}, "
              "packets {}, rate {}, TMA tiles {}, pollers {}, sources {}, segment rows {}, "
              "segment k-blocks {}",
              static_cast<int>(placement), communication_ctas, apart, dma_streams, by_packets, rate,
              by_tma_tiles, polled, all_sources.size(), rows_of_segment, k_blocks_of_segment),
          fields_of(as_program), fields_of(as_gemm)};
}

}  // namespace untax

#include "ops/all_gather_gemm/device_plan.hpp"

#include <algorithm>
#include <limits>

#include <untax/tile/order.hpp>

#include "engines/sm90/gemm/config.hpp"
#include "engines/sm90/gemm/variant.hpp"
#include "ops/all_gather_gemm/cutting.hpp"
#include "ops/all_gather_gemm/layout.hpp"
#include "ops/all_gather_gemm/plan_time.hpp"

namespace untax {
namespace {

/// Rows that a block multiplies, and those that the blocks of a cluster do together, where x is A.
constexpr std::int64_t block_rows = tile_rows(sm90::tile_config{});
constexpr std::int64_t tall_rows = 2 * block_rows;
/// With so few rows x is B, and all of A is y, which has to lie in one place.
constexpr std::int64_t most_short_rows = 128;
/// Tiles of a source end with its rows; if so much more is multiplied by that, A is collected.
constexpr double most_waste = 1.12;
constexpr std::int64_t most_collected_rows = 4096;

constexpr int usual_leading = 8;
constexpr int least_moving = 4;  // of blocks that move boxes
constexpr int most_leading = 20;
constexpr double worth_moving = 1.01;  // times as long may the GEMM take if more blocks move
constexpr int usual_apart = 16;
constexpr int usual_streams = 1;  // one after the other: what is needed first comes first

/// Blocks that move boxes with nothing beside them only have to fill the link, for which 16 do, and
/// to end together: each has so many boxes that one more or less is little, as many as its ring
/// holds. More than 64 would only take places in which blocks of the GEMM get ready meanwhile.
constexpr int least_alone = 16;
constexpr int most_alone = 64;
constexpr std::int64_t boxes_alone = 6;

/// Rows that go in packets, those of the least tile: every block reads all packets of its slices,
/// half of which are epochs. Own columns, with gather = k, are multiplied while pieces come.
constexpr std::int64_t packet_rows = 16;
/// So that packets are counted in 32 bits.
constexpr std::int64_t most_packet_elements = std::int64_t{1} << 30;
/// A rank that sends so many bytes sends them as boxes.
constexpr std::int64_t least_boxed_bytes = std::int64_t{8} << 20;

constexpr sm90::tile_config kernels[] = {
#define UNTAX_KERNEL(name, ...) {__VA_ARGS__},
#include "ops/all_gather_gemm/kernels.def"
#undef UNTAX_KERNEL
};
constexpr sm90::tile_config packet_kernels[] = {
#define UNTAX_KERNEL(name, ...) {__VA_ARGS__},
#include "ops/all_gather_gemm/packet_kernels.def"
#undef UNTAX_KERNEL
};

class planner {
 public:
  planner(const all_gather_gemm_problem& problem, int world, int rank,
          const operator_options& options, int processors)
      : problem_(problem), options_(options), processors_(processors) {
    made_.protocol.world = world;
    made_.protocol.rank = rank;
    // To the program: senders beside one worker, in its kernel or in their own.
    const bool own_grid = concurrent() || at_once();
    made_.protocol.how = own_grid ? pattern::producer_consumer : pattern::fused_specialized;
    made_.protocol.senders_acquire = at_once();
    if (options.how == pattern::fused_specialized || concurrent())
      made_.protocol.move = options.move;
  }

  /// Empty where no kernel can multiply.
  std::vector<gather_plan> make() {
    if (moves_beside() && most_beside() < 2) return {};
    choose_movers();
    choose_segments();
    std::vector<gather_plan> plans;
    if (made_.boxes && options_.movers == 0 && !at_once()) {
      const int most = std::min(most_leading, most_beside());
      // Of those that take the same time, the one in which fewest move: the first box of a block
      // comes later, the more others are on their way.
      for (int moving = least_moving; moving <= most; moving += 2) add(plans, moving);
    } else {
      add(plans, made_.leading + made_.apart);
    }
    std::ranges::stable_sort(plans, {}, [](const gather_plan& p) { return p.gemm.cycles; });
    return plans;
  }

 private:
  [[nodiscard]] bool by_rows() const { return problem_.gather == gather_axis::rows; }
  [[nodiscard]] sharding shards() const { return a_sharding(problem_, made_.protocol.world); }
  [[nodiscard]] std::int64_t sent_bytes() const {
    return shard_extent::of(problem_, made_.protocol.world).bytes() * (made_.protocol.world - 1);
  }
  /// Plans in which so many blocks only move.
  void add(std::vector<gather_plan>& plans, int moving) const {
    gather_plan begun = made_;
    if (begun.leading > 0) begun.leading = moving;
    if (begun.apart > 0) begun.apart = moving;
    const int free = processors_ - begun.leading - (concurrent() ? begun.apart : 0);
    const int multiplying = options_.workers > 0 ? std::min(options_.workers, free) : free;
    for (const sm90::gemm_plan& gemm : sm90::gemm_plans(shape(), multiplying)) {
      const auto config = begun.packets ? sm90::compiled_for(packet_kernels, gemm.config)
                                        : sm90::compiled_for(kernels, gemm.config);
      if (!config || (begun.segment_rows > 0 && gemm.config.swapped)) continue;
      if (begun.leading % cluster_blocks(gemm.config) != 0) continue;
      if (part_slices(gemm) < gemm.config.pieces * gemm.schedule.together) continue;
      gather_plan& plan = plans.emplace_back(begun);
      plan.gemm = gemm;
      plan.gemm.config = *config;
      plan.gemm.schedule.part_slices = part_slices(gemm);
      if (plan.segment_rows > 0 && plan.segment_rows % tall_rows == 0)
        plan.gemm.schedule.segments = static_cast<int>(plan.sources.size());
      cut_pieces(plan, problem_, options_);
      if (!at_once())
        plan.gemm.cycles = cycles_beside_movers(plan, static_cast<double>(sent_bytes()));
    }
  }
  /// Of blocks that share a tile: all begin with what is there first, the rank's own columns.
  [[nodiscard]] int part_slices(const sm90::gemm_plan& gemm) const {
    return by_rows() ? gemm.schedule.slices : made_.segment_slices;
  }
  /// Blocks that only move, beside two that multiply: pairs, as clusters of blocks start together.
  [[nodiscard]] int most_beside() const { return (processors_ - 2) / 2 * 2; }
  [[nodiscard]] bool moves_beside() const {
    return concurrent() || options_.how == pattern::fused_specialized;
  }
  [[nodiscard]] bool concurrent() const { return options_.how == pattern::producer_consumer; }
  [[nodiscard]] bool at_once() const { return options_.how == pattern::bulk_synchronous; }

  void choose_movers() {
    const int asked = options_.movers;
    switch (options_.how) {
      case pattern::fused_specialized:
        made_.who = gather_movers::leading_blocks;
        made_.boxes = goes_in_boxes();
        // Clusters of blocks start together.
        made_.leading = std::min(asked > 0 ? round_up(asked, 2) : idle_blocks(), most_beside());
        break;
      case pattern::fused_sequential:
        made_.who = gather_movers::all_blocks;
        break;
      case pattern::fused_warp_specialized:
        made_.who = gather_movers::warps;
        break;
      case pattern::producer_consumer:
        made_.boxes = goes_in_boxes();
        made_.apart = std::min(asked > 0 ? round_up(asked, 2) : usual_apart, most_beside());
        break;
      case pattern::copy_engine:
        made_.streams = asked > 0 ? asked : usual_streams;
        made_.protocol.sets = 1;  // addresses in a captured graph are the same in every run
        made_.protocol.reserves_next = true;
        break;
      default:
        made_.boxes = goes_in_boxes();
        made_.apart = asked > 0 ? asked : made_.boxes ? blocks_alone() : processors_;
        // Boxes go by pairs, behind which clusters of the GEMM find their places.
        made_.apart = made_.boxes ? std::min(round_up(made_.apart, 2), processors_ / 2 * 2)
                                  : std::min(made_.apart, processors_);
    }
    // By the kernel that multiplies.
    made_.packets = made_.who != gather_movers::elsewhere && by_rows() &&
                    made_.protocol.move == direction::push && problem_.m <= packet_rows &&
                    problem_.m * problem_.k <= most_packet_elements;
  }

  /// As many blocks as multiply hardly less by moving, and a usual number at least.
  [[nodiscard]] int idle_blocks() const {
    const sm90::gemm_shape whole{problem_.m, problem_.n, problem_.k, problem_.type};
    const auto cycles = [&](int leading) {
      for (const sm90::gemm_plan& plan : sm90::gemm_plans(whole, processors_ - leading))
        if (sm90::compiled_for(kernels, plan.config) && leading % cluster_blocks(plan.config) == 0)
          return plan.cycles;
      return std::numeric_limits<double>::max();
    };
    int leading = usual_leading;
    const double most = cycles(leading) * worth_moving;
    while (leading < most_leading && cycles(leading + 2) <= most) leading += 2;
    return leading;
  }

  /// Whether pieces are boxes: where a block has many, it moves them faster so; where it has few,
  /// it is later by the time until another warp has told what has arrived.
  [[nodiscard]] bool goes_in_boxes() const {
    return made_.protocol.move == direction::push && sent_bytes() >= least_boxed_bytes;
  }
  /// Each has the usual number of boxes at most: fewer where blocks would be too few, more where
  /// they would be too many.
  [[nodiscard]] int blocks_alone() const {
    const shard_extent shard = shard_extent::of(problem_, made_.protocol.world);
    const std::int64_t boxes =
        ceil_div(shard.rows, box_rows) * ceil_div(shard.columns, box_columns);
    const std::int64_t least = ceil_div<std::int64_t>(boxes, std::min(most_alone, processors_));
    const std::int64_t usual = std::min(boxes / least_alone, boxes_alone);
    return static_cast<int>(ceil_div(boxes, std::max(least, usual)));
  }
  void choose_segments() {
    const sharding dealt = shards();
    for (int hop = 0; hop < dealt.parts; ++hop) {
      const int source = source_at_hop(made_.protocol.rank, hop, dealt.parts);
      if (!dealt.of(source).empty()) made_.sources.push_back(source);
    }
    const auto parts = static_cast<std::int64_t>(made_.sources.size());
    if (!by_rows()) {
      made_.segment_slices =
          static_cast<int>(round_up(ceil_div<std::int64_t>(dealt.full(), sm90::slice_depth),
                                    std::int64_t{sm90::most_stage_slices}));
      return;
    }
    made_.segment_slices = static_cast<int>(ceil_div<std::int64_t>(problem_.k, sm90::slice_depth));
    const auto waste = [&](std::int64_t rows) {
      return static_cast<double>(parts * rows) /
             static_cast<double>(round_up(problem_.m, tall_rows));
    };
    // Tiles go by source, in the order in which rows come. Where that wastes much, the blocks of a
    // cluster may have rows of different sources, if together these fill clusters.
    std::int64_t rows = round_up(dealt.full(), tall_rows);
    const std::int64_t halves = round_up(dealt.full(), block_rows);
    if (waste(rows) > most_waste && parts * halves % tall_rows == 0) rows = halves;
    if (problem_.m <= most_short_rows ||
        (waste(rows) > most_waste && problem_.m <= most_collected_rows)) {
      made_.protocol.collect = true;
      made_.sources = {0};
    } else {
      made_.segment_rows = static_cast<int>(rows);
    }
  }

  /// What the GEMM sees: rows and slices of segments are rounded up.
  [[nodiscard]] sm90::gemm_shape shape() const {
    const auto parts = static_cast<std::int64_t>(made_.sources.size());
    return {made_.segment_rows > 0 ? parts * made_.segment_rows : problem_.m, problem_.n,
            by_rows() ? problem_.k : parts * made_.segment_slices * sm90::slice_depth,
            problem_.type};
  }

  all_gather_gemm_problem problem_;
  operator_options options_;
  int processors_;
  gather_plan made_;
};

}  // namespace

std::vector<gather_plan> gather_plans(const all_gather_gemm_problem& problem, int world, int rank,
                                      const operator_options& options, int processors) {
  const auto plans_of = [&](const operator_options& with, int of) {
    return planner(problem, world, rank, with, of).make();
  };
  std::vector<gather_plan> plans = plans_of(options, processors);
  if (!plans.empty()) return plans;
  sm90::refuse_plan("all_gather_gemm", rank, problem.m, options.workers, processors,
                    [&](int workers, int of) {
                      operator_options other = options;
                      other.workers = workers;
                      return !plans_of(other, of).empty();
                    });
}

}  // namespace untax

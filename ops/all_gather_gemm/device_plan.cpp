#include "ops/all_gather_gemm/device_plan.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <untax/tile/order.hpp>

#include "engines/sm90/gemm/config.hpp"
#include "ops/all_gather_gemm/layout.hpp"

namespace untax {
namespace {

/// Rows that the blocks of a cluster multiply together, where x is A.
constexpr std::int64_t tall_rows = 2 * tile_rows(sm90::tile_config{});
/// With fewer rows x is B, and all of A is y, which has to lie in one place.
constexpr std::int64_t most_short_rows = 256;
/// Tiles of a source end with its rows; if so much more is multiplied by that, A is collected.
constexpr double most_waste = 1.12;
constexpr std::int64_t most_collected_rows = 4096;

constexpr int usual_leading = 8;
constexpr int usual_apart = 16;
constexpr int usual_warps = 64;
constexpr std::int64_t least_piece_bytes = std::int64_t{1} << 10;
constexpr std::int64_t most_piece_bytes = std::int64_t{256} << 10;
constexpr std::int64_t piece_rows = 64;
constexpr std::int64_t pieces_of_mover = 4;

/// Configurations that there are kernels for.
bool is_compiled(const sm90::tile_config& c) {
  if (!c.swapped) return true;
  return c.columns == 16 || (c.columns == 64 && c.cluster == 1) || c.columns == 128;
}

class planner {
 public:
  planner(const all_gather_gemm_problem& problem, int world, int rank,
          const operator_options& options, int processors)
      : problem_(problem), options_(options), processors_(processors) {
    made_.protocol.world = world;
    made_.protocol.rank = rank;
    // To the protocol: movers beside one worker. How they are spread over kernels is not its
    // business.
    made_.protocol.how = pattern::fused_specialized;
    made_.protocol.move = options.move;
    made_.protocol.workers = 1;
  }

  std::vector<gather_plan> make() {
    choose_movers();
    choose_segments();
    std::vector<gather_plan> plans;
    for (const sm90::gemm_plan& gemm : sm90::gemm_plans(shape(), multiplying())) {
      if (!is_compiled(gemm.config) || (made_.segment_rows > 0 && gemm.config.swapped)) continue;
      gather_plan plan = made_;
      plan.gemm = gemm;
      if (plan.segment_rows > 0)
        plan.gemm.schedule.segments = static_cast<int>(plan.sources.size());
      cut(plan);
      plans.push_back(std::move(plan));
    }
    return plans;
  }

 private:
  [[nodiscard]] bool by_rows() const { return problem_.gather == gather_axis::rows; }
  [[nodiscard]] sharding shards() const { return a_sharding(problem_, made_.protocol.world); }
  [[nodiscard]] int multiplying() const {
    const int free = processors_ - made_.leading - (concurrent() ? made_.apart : 0);
    return options_.workers > 0 ? std::min(options_.workers, free) : free;
  }
  [[nodiscard]] bool concurrent() const { return options_.how == pattern::producer_consumer; }

  void choose_movers() {
    const int asked = options_.movers;
    switch (options_.how) {
      case pattern::fused_specialized:
        made_.who = gather_movers::leading_blocks;
        // Clusters of blocks start together.
        made_.leading = std::min(round_up(asked > 0 ? asked : usual_leading, 2), processors_ - 2);
        break;
      case pattern::fused_sequential:
        made_.who = gather_movers::all_blocks;
        break;
      case pattern::fused_warp_specialized:
        made_.who = gather_movers::warps;
        break;
      case pattern::producer_consumer:
        made_.apart = std::min(round_up(asked > 0 ? asked : usual_apart, 2), processors_ - 2);
        break;
      default:
        made_.apart = asked > 0 ? asked : processors_;
    }
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
    const std::int64_t rows = round_up(dealt.full(), tall_rows);
    const auto waste =
        static_cast<double>(parts * rows) / static_cast<double>(round_up(problem_.m, tall_rows));
    if (problem_.m <= most_short_rows ||
        (waste > most_waste && problem_.m <= most_collected_rows)) {
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

  /// Movers, and pieces of which each of them has several.
  void cut(gather_plan& plan) const {
    gemm_plan& p = plan.protocol;
    const int blocks = plan.gemm.schedule.clusters * plan.gemm.config.cluster;
    const int warps = options_.movers > 0 ? options_.movers : usual_warps;
    p.movers = plan.who == gather_movers::leading_blocks ? plan.leading
               : plan.who == gather_movers::all_blocks   ? 4 * blocks
               : plan.who == gather_movers::warps        ? std::min(warps, blocks)
                                                         : plan.apart;
    const std::int64_t full = shards().full();
    const std::int64_t other = by_rows() ? problem_.k : problem_.m;
    const std::int64_t wanted = std::clamp(full * other * 2 / (p.movers * pieces_of_mover),
                                           least_piece_bytes, most_piece_bytes);
    const std::int64_t rows = std::min(by_rows() ? full : problem_.m, piece_rows);
    const std::int64_t columns =
        std::clamp<std::int64_t>(round_up<std::int64_t>(wanted / 2 / rows, sm90::slice_depth),
                                 sm90::slice_depth, by_rows() ? problem_.k : full);
    p.tile_m = rows;
    p.tile_n = plan.gemm.config.swapped ? tile_rows(plan.gemm.config) : plan.gemm.config.columns;
    p.panel_k = columns;
    p.cross = by_rows() ? columns : rows;
  }

  all_gather_gemm_problem problem_;
  operator_options options_;
  int processors_;
  gather_plan made_;
};

}  // namespace

std::vector<gather_plan> gather_plans(const all_gather_gemm_problem& problem, int world, int rank,
                                      const operator_options& options, int processors) {
  return planner(problem, world, rank, options, processors).make();
}

std::string gather_plan::text() const {
  const auto movers = [&]() -> std::string {
    switch (who) {
      case gather_movers::leading_blocks:
        return fmt::format("{} blocks move", leading);
      case gather_movers::all_blocks:
        return "all blocks move, then multiply";
      case gather_movers::warps:
        return fmt::format("a warp in each of {} blocks moves", protocol.movers);
      case gather_movers::elsewhere:
        break;
    }
    return apart > 0 ? fmt::format("{} blocks of another kernel move", apart)
                     : std::string("copy engines move");
  };
  return fmt::format("{} ({}), pieces of {} x {}{}; {}", movers(), name_of(protocol.move),
                     protocol.tile_m, protocol.panel_k, protocol.collect ? ", A collected" : "",
                     gemm.text());
}

}  // namespace untax

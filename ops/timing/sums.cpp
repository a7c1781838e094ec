#include <algorithm>
#include <vector>

#include <untax/tile/order.hpp>
#include <untax/tile/shard.hpp>

#include "engines/timing/gemm_team.hpp"
#include "ops/gemm_reduce_common/device_plan.hpp"
#include "ops/timing/predictor.hpp"

namespace untax {
namespace {

using timing::signal_way;

/// An owner waits for its tiles, and adds them, in so many portions.
constexpr int portions = 16;
/// Partials have the type of A, as in `untax taxes`.
constexpr dtype type = dtype::bf16;
constexpr auto partial_bytes = static_cast<double>(size_of(type));

/// Lowers the kernels that sum a GEMM over ranks: clusters store partial tiles at the owners of
/// their rows, where words carry their own signal, and blocks add them there.
class sums_lowering {
 public:
  sums_lowering(predictor& p, const device_sum& sum, int ranks, pattern how)
      : p_(p), sum_(sum), ranks_(ranks), work_(ranks) {
    for (int rank = 0; rank < ranks; ++rank)
      plans_.push_back(sums_plans(sum, ranks, rank, {.how = how}, {p.processors()}).front());
    const sums_plan& plan = plans_.front();
    const std::int64_t depth = sharding{sum.k, ranks, shard_granularity}.full();
    const gpu::gemm_shape shape{sum.m, sum.n, depth, sum.type};
    const int beside = plan.beside ? plan.own_grid : plan.comm_ctas;
    seconds_ = p.seconds_beside(plan.gemm, shape, shape, beside);
    tiles_ = plan.how.row_tiles * plan.how.col_tiles;
    adders_ = plan.beside || plan.comm_ctas > 0 ? 1 : plan.gemm.schedule.clusters;
  }

  timing::workload lower() {
    for (int rank = 0; rank < ranks_; ++rank) add_rank(rank);
    return std::move(work_);
  }

 private:
  [[nodiscard]] const gpu::sum_fragments& how(int rank) const {
    return plans_[static_cast<std::size_t>(rank)].how;
  }
  // Counters of a rank: of each tile from each source, then of adders that have passed sums on.
  [[nodiscard]] int counter_of(int source, int row_tile, int col_tile) const {
    return source * tiles_ + row_tile * how(source).col_tiles + col_tile;
  }
  [[nodiscard]] int passed_by(int source, int adder) const {
    return ranks_ * tiles_ + source * adders_ + adder;
  }

  void add_rank(int rank) {
    const timing::machine_numbers& n = p_.numbers();
    const sums_plan& plan = plans_[static_cast<std::size_t>(rank)];
    if (plan.beside) add_adders(rank, work_.add_kernel(rank, 0, "add", n.start), plan.own_grid);
    const int kernel = work_.add_kernel(rank, 0, "gemm", plan.beside ? n.launch_graph : 0);
    if (plan.comm_ctas > 0) add_adders(rank, kernel, plan.comm_ctas);
    timing::gemm_team team;
    team.order = gpu::tile_scheduler(plan.gemm.schedule);
    team.seconds = seconds_;
    team.finished = [this, rank](int /*cluster*/, int tile) { send(rank, tile); };
    if (!plan.beside && plan.comm_ctas == 0) {
      team.after = [this, rank, &plan](int cluster) { add_up(rank, cluster, plan.gemm.blocks()); };
    }
    timing::add_gemm(work_, kernel, team);
    if (plan.how.passes_on) {
      work_.add_worker(kernel);
      for (int source = 0; source < ranks_; ++source) {
        if (source == rank || plan.how.tiles_of(source) == 0) continue;
        for (int adder = 0; adder < adders_; ++adder)
          work_.wait({rank, passed_by(source, adder), 1});
      }
      work_.act({});
    }
  }

  /// Stores a tile of every block of a cluster at the owners of its rows, nearest first.
  void send(int rank, int tile) {
    const sums_plan& plan = plans_[static_cast<std::size_t>(rank)];
    const gpu::sum_fragments& f = plan.how;
    const gpu::tile_config& c = plan.gemm.config;
    const auto at = gpu::tile_scheduler(plan.gemm.schedule).at(tile);
    for (int block = 0; block < c.cluster; ++block) {
      const int along_m = at.m * c.cluster + block;
      const int row_tile = f.rotated((f.swap_ab ? at.n : along_m) * f.tile_m) / f.tile_m;
      const int col_tile = f.swap_ab ? along_m : at.n;
      const range rows = range{std::int64_t{row_tile} * f.tile_m, f.tile_m};
      const std::int64_t cols =
          std::min<std::int64_t>(f.tile_n, sum_.n - std::int64_t{col_tile} * f.tile_n);
      if (cols <= 0) continue;
      for (int hop = 1; hop <= ranks_; ++hop) {
        const int owner = receiver_at_hop(rank, hop, ranks_);
        const std::int64_t own = rows_of(f, owner, rows);
        if (own == 0) continue;
        work_.raise({owner, counter_of(rank, row_tile, col_tile), 1});
        if (owner == rank) {
          work_.act({.way = signal_way::at_once});
        } else {
          work_.act({.bytes = partial_bytes * static_cast<double>(own * cols),
                     .from = rank,
                     .to = owner,
                     .way = signal_way::inside,
                     .detached = true});
        }
      }
    }
  }
  [[nodiscard]] static std::int64_t rows_of(const gpu::sum_fragments& f, int owner,
                                            const range& rows) {
    const std::int64_t first = std::max<std::int64_t>(rows.begin, f.first_row(owner));
    return std::max<std::int64_t>(std::min<std::int64_t>(rows.end(), f.end_row(owner)) - first, 0);
  }

  void add_adders(int rank, int kernel, int blocks) {
    // They share all additions, so one worker stands for all.
    work_.add_worker(kernel);
    add_up(rank, 0, blocks);
  }
  /// The activities of a block that adds: its share of every portion, when that has arrived.
  void add_up(int rank, int adder, int blocks) {
    const timing::machine_numbers& n = p_.numbers();
    const gpu::sum_fragments& f = how(rank);
    const int tiles = f.tiles_of(rank) * f.col_tiles;
    const int steps = std::min(portions, tiles);
    const double elements =
        static_cast<double>(f.end_row(rank) - f.first_row(rank)) * static_cast<double>(sum_.n);
    // Partials are read, and zeros written back.
    const double rate = std::min(blocks * n.block_rate, n.memory_rate / 2);
    for (int step = 0; step < steps; ++step) {
      const int end = (step + 1) * tiles / steps;
      for (int tile = step * tiles / steps; tile < end; ++tile) {
        const gpu::sum_fragment first = f.fragment_of(rank, tile * f.of_tile());
        if (std::int64_t{first.col_tile} * f.tile_n >= sum_.n) continue;
        for (int source = 0; source < ranks_; ++source)
          work_.wait({rank, counter_of(source, first.row_tile, first.col_tile), 1});
      }
      work_.act(
          {.busy = elements / steps * partial_bytes * ranks_ / rate, .way = signal_way::at_once});
      if (!f.passes_on) continue;
      pass_on(rank, elements / steps / adders_, blocks * n.block_rate / adders_);
      if (step + 1 == steps) {
        for (int hop = 1; hop < ranks_; ++hop)
          work_.raise({receiver_at_hop(rank, hop, ranks_), passed_by(rank, adder), 1});
        work_.act({});
      }
    }
  }
  /// Sends so many elements of the sum to each peer.
  void pass_on(int rank, double elements, double pace) {
    for (int hop = 1; hop < ranks_; ++hop) {
      work_.act({.bytes = elements * static_cast<double>(size_of(sum_.type)),
                 .pace = pace,
                 .from = rank,
                 .to = receiver_at_hop(rank, hop, ranks_),
                 .detached = true});
    }
  }

  predictor& p_;
  device_sum sum_;
  int ranks_;
  std::vector<sums_plan> plans_;  // by rank
  timing::workload work_;
  double seconds_ = 0;
  int tiles_ = 0;
  int adders_ = 1;  // of a rank: its clusters, or one worker that stands for all blocks that add
};

/// cuBLASLt and NCCL. Rows that do not divide by the ranks are handed over by a copy.
double seconds_by_library(predictor& p, const timed_case& c, bool everywhere) {
  const timing::machine_numbers& n = p.numbers();
  const double between = c.by.ends_with("eager") ? n.launch_eager : n.launch_graph;
  const double bytes = partial_bytes * static_cast<double>(c.m) * static_cast<double>(c.n);
  const bool copied = !everywhere && c.m % c.ranks != 0;
  const double seconds =
      p.gemm_alone({c.m, c.n, sharding{c.k, c.ranks, shard_granularity}.full()}, true) + between +
      p.library_collective(everywhere ? "all_reduce" : "reduce_scatter", c.ranks, bytes) +
      (copied ? between + 2 * bytes / c.ranks / n.memory_rate : 0);
  if (!c.by.ends_with("eager")) return seconds;
  return p.launched_by_host(seconds + n.launch_eager, copied ? 1 : 0);
}

}  // namespace

predicted simulate_sums(predictor& p, const timed_case& c) {
  const operator_entry& entry = operator_named(c.op);
  const bool everywhere = entry.phases != nullptr;
  if (c.by.starts_with("bulk_library")) {
    const double seconds = seconds_by_library(p, c, everywhere);
    return {seconds, seconds, {}};
  }
  device_sum sum{
      .operator_name = entry.name, .m = c.m, .n = c.n, .k = c.k, .type = type, .partials = type};
  if (everywhere) {
    sum.target = reduce_target::everywhere;
    sum.phases = entry.phases({.m = c.m, .n = c.n, .k = c.k, .type = type, .partials = type},
                              c.ranks, memory_kind::cuda);
  }
  const pattern how = pattern_of(c.by);
  if (how == pattern::fused_warp_specialized) return simulate_row_sums(p, sum, c.ranks);
  return p.run(sums_lowering(p, sum, c.ranks, how).lower());
}

}  // namespace untax

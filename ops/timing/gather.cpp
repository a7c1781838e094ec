#include <algorithm>
#include <memory>
#include <vector>

#include <untax/tile/order.hpp>
#include <untax/tile/program.hpp>

#include "engines/gpu/comm/placement.hpp"
#include "engines/timing/gemm_team.hpp"
#include "engines/timing/reader.hpp"
#include "ops/all_gather_gemm/device_plan.hpp"
#include "ops/all_gather_gemm/protocol.hpp"
#include "ops/timing/predictor.hpp"

namespace untax {
namespace {

using timing::signal_way;

constexpr std::uint64_t epoch = 1;
/// Portions of a tile, before each of which a cluster waits for arrivals.
constexpr int portions = 8;
/// Warps of a block in which all warps send that do not multiply.
constexpr int warps_that_send = 4;

/// Lowers a rank's kernels to activities of a workload.
class gather_lowering {
 public:
  gather_lowering(predictor& p, const all_gather_gemm_problem& problem, int ranks, pattern how)
      : p_(p),
        problem_(problem),
        ranks_(ranks),
        how_(how),
        plan_(gather_plans(problem, ranks, 0,
                           {.how = how, .constant_weights = how != pattern::bulk_synchronous},
                           p.processors())
                  .front()),
        work_(ranks) {
    seconds_ = gemm_seconds();
  }

  timing::workload lower() {
    for (int rank = 0; rank < ranks_; ++rank) {
      protocol_plan own = plan_.protocol;
      own.rank = rank;
      protocol_ = std::make_unique<all_gather_gemm_protocol>(problem_, own);
      source_ = std::make_unique<program>(*protocol_);
      sources_.clear();
      for (int hop = 0; hop < protocol_->last_source() + 1; ++hop)
        sources_.push_back(source_at_hop(rank, hop, protocol_->last_source() + 1));
      add_rank(rank);
    }
    return std::move(work_);
  }

 private:
  [[nodiscard]] bool by_rows() const { return problem_.gather == gather_axis::rows; }
  [[nodiscard]] bool collected() const { return plan_.protocol.gather_own; }

  double gemm_seconds() {
    const auto parts = static_cast<std::int64_t>(plan_.sources.size());
    const gpu::gemm_shape shape{
        plan_.segment_rows > 0 ? parts * plan_.segment_rows : problem_.m, problem_.n,
        by_rows() ? problem_.k : parts * plan_.segment_k_blocks * gpu::block_k, problem_.type};
    const gpu::gemm_shape like{problem_.m, problem_.n, problem_.k, problem_.type};
    const int beside = plan_.comm_ctas + (how_ == pattern::producer_consumer ? plan_.own_grid : 0);
    return p_.seconds_beside(plan_.gemm, shape, like, beside);
  }

  void add_rank(int rank) {
    const timing::machine_numbers& n = p_.numbers();
    const bool at_once = how_ == pattern::bulk_synchronous;
    int senders_kernel = -1;
    if (at_once || how_ == pattern::producer_consumer || how_ == pattern::copy_engine)
      senders_kernel = work_.add_kernel(rank, 0, "gather", n.start);
    if (senders_kernel >= 0) {
      for (int sender = 0; sender < plan_.protocol.senders; ++sender) {
        work_.add_worker(senders_kernel);
        timing::add_steps(work_, *source_, 0, sender, epoch, moving());
      }
    }
    const double launch = at_once ? n.launch_graph : senders_kernel >= 0 ? n.launch_graph : 0;
    const int gemm = work_.add_kernel(rank, at_once ? 1 : 0, "gemm", launch);
    if (senders_kernel < 0 && plan_.who != gather_senders::all_ctas_first) {
      for (int sender = 0; sender < plan_.protocol.senders; ++sender) {
        work_.add_worker(gemm);
        work_.act({.busy = n.start});
        timing::add_steps(work_, *source_, 0, sender, epoch, moving());
      }
    }
    add_clusters(rank, gemm);
  }

  [[nodiscard]] timing::step_costs moving() const {
    const timing::machine_numbers& n = p_.numbers();
    timing::step_costs costs;
    costs.element_bytes = static_cast<double>(size_of(problem_.type));
    costs.move_pace = n.block_rate;
    costs.way = plan_.packets ? signal_way::inside : signal_way::released;
    costs.bytes_on_wire = plan_.packets ? 2 : 1;
    costs.detached = plan_.packets;
    costs.posted = plan_.tma_tiles || plan_.streams > 0;
    if (plan_.streams > 0) {
      costs.move_pace = 0;
      costs.begin_after = costs.signal_after = n.copy_start;  // a signal is a copy of 8 bytes
    } else if (!plan_.tma_tiles && (plan_.comm_ctas + plan_.own_grid) > 0) {
      costs.move_pace /= gpu::sender_warps;
    } else if (plan_.who == gather_senders::epilogue_warps && plan_.rate_limit > 0) {
      costs.move_pace = plan_.rate_limit * 1e9 / plan_.protocol.senders;
    }
    return costs;
  }

  void need(const room& r) {
    if (r.named()) work_.wait({r.consumer, r.ready, r.use});
  }

  /// Senders of the blocks that multiply, side by side: four warps of each. The first of them is
  /// also the GEMM's producer, when it has sent its part. Returns the counter that signals this for
  /// block 0; those of the other blocks follow.
  int add_warps_that_multiply_later(int rank, int kernel) {
    const int blocks = plan_.gemm.blocks();
    const int first = source_->counters();
    const moving_blocks all{plan_.who, by_rows(), blocks, plan_.protocol.senders};
    timing::step_costs costs = moving();
    costs.move_pace /= warps_that_send;
    for (int block = 0; block < blocks; ++block) {
      for (int warp = 0; warp < warps_that_send; ++warp) {
        work_.add_worker(kernel);
        timing::add_steps(work_, *source_, 0, sender_beside(all, block, warp), epoch, costs);
        if (warp > 0) continue;
        work_.raise({rank, first + block, 1});
        work_.act({.way = signal_way::at_once});
      }
    }
    return first;
  }

  void add_clusters(int rank, int kernel) {
    timing::gemm_team team;
    team.order = gpu::tile_scheduler(plan_.gemm.schedule);
    team.seconds = seconds_;
    team.portion = std::max(1, ceil_div(team.order.k_blocks, portions));
    seen_.assign(static_cast<std::size_t>(ranks_), {});
    for (int source = 0; source < ranks_; ++source)
      seen_[static_cast<std::size_t>(source)].assign(
          static_cast<std::size_t>(protocol_->chunks_of(source)), -1);
    if (how_ != pattern::bulk_synchronous) {
      team.needs = [this, rank](int cluster, int tile, int begin, int end) {
        add_needs(rank, cluster, tile, begin, end);
      };
    }
    if (plan_.who == gather_senders::all_ctas_first) {
      const int first = add_warps_that_multiply_later(rank, kernel);
      const int blocks = cluster_blocks(plan_.gemm.config);
      team.before = [this, rank, first, blocks](int cluster) {
        for (int block = 0; block < blocks; ++block)
          work_.wait({rank, first + cluster * blocks + block, 1});
        work_.act({});
      };
    }
    timing::add_gemm(work_, kernel, team);
  }

  /// Waits for the chunks of A in the rows of a tile and in k-blocks [begin, end).
  void add_needs(int rank, int cluster, int tile, int begin, int end) {
    const gpu::tile_config& config = plan_.gemm.config;
    const gpu::tile_scheduler order(plan_.gemm.schedule);
    const std::int64_t depth = gpu::block_k;
    if (config.swap_ab || collected()) {
      range rows{0, problem_.m};
      if (!config.swap_ab) {
        const std::int64_t tall = std::int64_t{tile_rows(config)} * config.cluster;
        rows = {order.at(tile).m * tall, tall};
      }
      needs_of_rows(rank, cluster, rows, begin, end);
      return;
    }
    for (int block = 0; block < config.cluster; ++block) {
      const std::int64_t row =
          (std::int64_t{order.at(tile).m} * config.cluster + block) * tile_rows(config);
      if (plan_.segment_rows == 0) {
        needs_of_rows(rank, cluster, {row, tile_rows(config)}, begin, end);
        continue;
      }
      const auto hop = static_cast<std::size_t>(row / plan_.segment_rows);
      if (hop >= sources_.size()) continue;
      const range shard = protocol_->shard(sources_[hop]);
      const std::int64_t offset = row % plan_.segment_rows;
      if (offset >= shard.size) continue;
      wait_for(cluster, sources_[hop], {shard.begin + offset, tile_rows(config)},
               {begin * depth, (end - begin) * depth});
    }
  }
  /// The same for rows of A that are those of tiles.
  void needs_of_rows(int rank, int cluster, range rows, int begin, int end) {
    const std::int64_t depth = gpu::block_k;
    if (by_rows()) {
      for (int source = 0; source < ranks_; ++source) {
        if (source == rank && !collected()) continue;
        wait_for(cluster, source, rows, {begin * depth, (end - begin) * depth});
      }
      return;
    }
    const int each = std::max(plan_.segment_k_blocks, 1);
    for (int k_block = begin; k_block < end;) {
      const auto hop = static_cast<std::size_t>(k_block / each);
      const int until = std::min(end, (k_block / each + 1) * each);
      if (hop >= sources_.size()) return;
      const range shard = protocol_->shard(sources_[hop]);
      wait_for(cluster, sources_[hop], rows,
               {shard.begin + (k_block % each) * depth, (until - k_block) * depth});
      k_block = until;
    }
  }
  /// Waits for the chunks of a source that lie in a rectangle of A.
  void wait_for(int cluster, int source, range rows, range cols) {
    const pieces down = protocol_->row_chunks(source);
    const pieces across = protocol_->col_chunks(source);
    const auto span = [](const pieces& all, range part) {
      const std::int64_t first = std::max<std::int64_t>(part.begin - all.whole.begin, 0);
      const std::int64_t last = std::min(part.end() - all.whole.begin, all.whole.size);
      return last <= first ? range{0, 0}
                           : range{first / all.step, (last - 1) / all.step - first / all.step + 1};
    };
    const range r = span(down, rows);
    const range c = span(across, cols);
    for (std::int64_t i = r.begin; i < r.end(); ++i) {
      for (std::int64_t j = c.begin; j < c.end(); ++j) {
        const auto index = static_cast<int>(i * across.count() + j);
        int& seen = seen_[static_cast<std::size_t>(source)][static_cast<std::size_t>(index)];
        if (seen == cluster) continue;
        seen = cluster;
        need(protocol_->arrival_of(protocol_->chunk_at(source, index), epoch));
      }
    }
  }

  predictor& p_;
  all_gather_gemm_problem problem_;
  int ranks_;
  pattern how_;
  gather_plan plan_;
  timing::workload work_;
  double seconds_ = 0;
  // Of the rank that is being lowered.
  std::unique_ptr<all_gather_gemm_protocol> protocol_;
  std::unique_ptr<program> source_;
  std::vector<int> sources_;
  std::vector<std::vector<int>> seen_;  // the last cluster that waited for each chunk
};

}  // namespace

predicted simulate_gather(predictor& p, const timed_case& c) {
  if (c.by.starts_with("bulk_library")) {
    const timing::machine_numbers& n = p.numbers();
    const double bytes = 2.0 * static_cast<double>(c.m) * static_cast<double>(c.k);
    const double between = c.by.ends_with("eager") ? n.launch_eager : n.launch_graph;
    double seconds = p.library_collective("all_gather", c.ranks, bytes) + between +
                     p.gemm_alone({c.m, c.n, c.k}, true);
    // Data that was gathered by columns is laid out in rows.
    const bool turned = c.gather == gather_axis::k;
    if (turned) seconds += between + 2 * bytes / n.memory_rate;
    if (c.by.ends_with("eager"))
      seconds = p.launched_by_host(seconds + n.launch_eager, turned ? 1 : 0);
    return {seconds, seconds, {}};
  }
  gather_lowering lowering(p, {c.m, c.n, c.k, dtype::bf16, c.gather}, c.ranks, pattern_of(c.by));
  return p.run(lowering.lower());
}

}  // namespace untax

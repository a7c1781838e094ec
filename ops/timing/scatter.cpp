#include <algorithm>
#include <memory>

#include <untax/tile/order.hpp>
#include <untax/tile/program.hpp>

#include "engines/timing/gemm_team.hpp"
#include "engines/timing/reader.hpp"
#include "ops/gemm_all_scatter/device_plan.hpp"
#include "ops/gemm_all_scatter/protocol.hpp"
#include "ops/timing/predictor.hpp"

namespace untax {
namespace {

using timing::signal_way;

constexpr std::uint64_t epoch = 1;

class scatter_lowering {
 public:
  scatter_lowering(predictor& p, const gemm_all_scatter_problem& problem, int ranks, pattern how)
      : p_(p),
        problem_(problem),
        ranks_(ranks),
        how_(how),
        plan_(scatter_plans(problem, ranks, 0,
                            {.how = how, .constant_weights = how != pattern::bulk_synchronous},
                            {p.processors()})
                  .front()),
        work_(ranks) {
    seconds_ = gemm_seconds();
  }

  timing::workload lower() {
    for (int rank = 0; rank < ranks_; ++rank) {
      protocol_plan own = plan_.protocol;
      own.rank = rank;
      protocol_ = std::make_unique<gemm_all_scatter_protocol>(problem_, own);
      source_ = std::make_unique<program>(*protocol_);
      if (plan_.streams > 0) {
        add_copies(rank);
      } else if (plan_.way == scatter_way::store_to_peers) {
        add_store_to_peers(rank);
      } else {
        add_senders(rank);
      }
    }
    return std::move(work_);
  }

 private:
  double gemm_seconds() {
    const std::int64_t columns = sharding{problem_.n, ranks_, shard_granularity}.full();
    const std::int64_t rows = plan_.row_splits > 1 ? plan_.split_rows : problem_.m;
    const gpu::gemm_shape shape{rows, columns, problem_.k, problem_.type};
    const int beside = plan_.comm_ctas + (how_ == pattern::producer_consumer ? plan_.own_grid : 0) +
                       (plan_.streams > 0 ? 2 : 0);
    return p_.seconds_beside(plan_.gemm, shape, {problem_.m, columns, problem_.k, problem_.type},
                             beside);
  }
  [[nodiscard]] double tile_bytes() const {
    const double rank = static_cast<double>(problem_.m) *
                        static_cast<double>(protocol_->tiles().cols.whole.size) *
                        static_cast<double>(size_of(problem_.type));
    return rank / plan_.gemm.schedule.tiles() / plan_.row_splits;
  }
  [[nodiscard]] timing::gemm_team team() const {
    timing::gemm_team made;
    made.order = gpu::tile_scheduler(plan_.gemm.schedule);
    made.seconds = seconds_;
    return made;
  }

  /// Every cluster sends its tiles to all peers; each tile has a counter of its own there.
  void add_store_to_peers(int rank) {
    const int kernel = work_.add_kernel(rank, 0, "gemm_all_scatter", 0);
    const int tiles = plan_.gemm.schedule.tiles();
    timing::gemm_team clusters = team();
    clusters.finished = [&](int /*cluster*/, int tile) {
      for (int hop = 1; hop < ranks_; ++hop) {
        const int peer = receiver_at_hop(rank, hop, ranks_);
        work_.raise({peer, rank * tiles + tile, 1});
        work_.act({.bytes = tile_bytes(), .from = rank, .to = peer, .detached = true});
      }
    };
    timing::add_gemm(work_, kernel, clusters);
    wait_for_tiles(rank, kernel, tiles);
  }
  void wait_for_tiles(int rank, int kernel, int tiles) {
    work_.add_worker(kernel);
    for (int hop = 1; hop < ranks_; ++hop) {
      for (int tile = 0; tile < tiles; ++tile)
        work_.wait({rank, source_at_hop(rank, hop, ranks_) * tiles + tile, 1});
    }
    work_.act({});
  }

  [[nodiscard]] timing::step_costs moving() const {
    timing::step_costs costs;
    costs.element_bytes = static_cast<double>(size_of(problem_.type));
    costs.move_pace = p_.numbers().block_rate;
    costs.posted = true;
    return costs;
  }
  /// Senders: beside the GEMM, as tiles are flagged, or after it.
  void add_senders(int rank) {
    const timing::machine_numbers& n = p_.numbers();
    const bool behind = plan_.way == scatter_way::local_only;
    const int gemm = work_.add_kernel(rank, 0, "gemm", 0);
    timing::gemm_team clusters = team();
    if (!behind) {
      clusters.finished = [&](int /*cluster*/, int tile) {
        flag(tile);
        if (work_.pending()) work_.act({.way = signal_way::at_once});
      };
    }
    timing::add_gemm(work_, gemm, clusters);
    for (int i = 1; i < source_->kernels(); ++i) {
      const timing::step_costs costs = moving();
      const untax::kernel k = source_->kernel_at(i);
      const double launch = !behind ? n.start : k.workers > 1 ? n.launch_graph : 0;
      const int added = work_.add_kernel(rank, k.stage, k.name, launch);
      for (int worker = 0; worker < k.workers; ++worker) {
        work_.add_worker(added);
        timing::add_steps(work_, *source_, i, worker, epoch, costs);
      }
    }
  }
  /// Raises the flags of the protocol's tiles of a tile that a cluster has finished.
  void flag(int tile) {
    const gpu::tile_config& c = plan_.gemm.config;
    const auto at = gpu::tile_scheduler(plan_.gemm.schedule).at(tile);
    for (int block = 0; block < c.cluster; ++block) {
      const std::int64_t x = (std::int64_t{at.m} * c.cluster + block) * tile_rows(c);
      const std::int64_t y = std::int64_t{at.n} * c.block_n;
      const int number = c.swap_ab ? protocol_->tile_at(y, x) : protocol_->tile_at(x, y);
      if (number < 0) continue;
      const room r = protocol_->tile_flag(number, epoch);
      if (r.named()) work_.raise({r.consumer, r.ready, r.use});
    }
  }

  /// Adds kernels that multiply some of the rows each; copy engines begin after each of them.
  void add_copies(int rank) {
    const timing::machine_numbers& n = p_.numbers();
    const int row_splits = plan_.row_splits;
    const int flags = ranks_ * row_splits;  // after the counters of what peers send
    const int kernel = work_.add_kernel(rank, 0, "gemm", 0);
    work_.add_worker(kernel);
    for (int row_split = 0; row_split < row_splits; ++row_split) {
      work_.raise({rank, flags + row_split, 1});
      work_.act(
          {.busy = seconds_ + (row_split > 0 ? n.launch_graph : 0), .way = signal_way::at_once});
    }
    const double bytes = tile_bytes() * plan_.gemm.schedule.tiles();
    for (int stream = 0; stream < plan_.streams; ++stream) {
      work_.add_worker(kernel);
      int turn = 0;
      for (int row_split = 0; row_split < row_splits; ++row_split) {
        for (int hop = 1; hop < ranks_; ++hop) {
          if (turn++ % plan_.streams != stream) continue;
          const int peer = receiver_at_hop(rank, hop, ranks_);
          work_.wait({rank, flags + row_split, 1});
          work_.raise({peer, rank * row_splits + row_split, 1});
          work_.act({.bytes = bytes, .begin_after = n.copy_start, .from = rank, .to = peer});
        }
      }
    }
    wait_for_tiles(rank, kernel, row_splits);
  }

  predictor& p_;
  gemm_all_scatter_problem problem_;
  int ranks_;
  pattern how_;
  scatter_plan plan_;
  timing::workload work_;
  double seconds_ = 0;
  std::unique_ptr<gemm_all_scatter_protocol> protocol_;
  std::unique_ptr<program> source_;
};

}  // namespace

predicted simulate_scatter(predictor& p, const timed_case& c) {
  if (c.by.starts_with("bulk_library")) {
    const timing::machine_numbers& n = p.numbers();
    const double bytes = 2.0 * static_cast<double>(c.m) * static_cast<double>(c.n);
    const bool eager = c.by.ends_with("eager");
    const std::int64_t columns = sharding{c.n, c.ranks, shard_granularity}.full();
    // Data that was gathered by ranks is laid out in rows.
    double seconds = p.gemm_alone({c.m, columns, c.k}, true) +
                     p.library_collective("all_gather", c.ranks, bytes) +
                     2 * (eager ? n.launch_eager : n.launch_graph) + 2 * bytes / n.memory_rate;
    if (eager) seconds = p.launched_by_host(seconds, 1);
    return {seconds, seconds, {}};
  }
  scatter_lowering lowering(p, {c.m, c.n, c.k, dtype::bf16}, c.ranks, pattern_of(c.by));
  return p.run(lowering.lower());
}

}  // namespace untax

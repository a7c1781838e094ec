#include <algorithm>
#include <vector>

#include <untax/tile/order.hpp>
#include <untax/tile/shard.hpp>

#include "engines/timing/gemm_team.hpp"
#include "ops/gemm_reduce_common/row_plan.hpp"
#include "ops/timing/predictor.hpp"

namespace untax {
namespace {

using timing::signal_way;

/// Clusters store tiles of partial results at the owners of their rows, and add their own ones.
/// They add each as it is multiplied if those of peers have arrived, and the rest at the end: a
/// tile each. Or a kernel after all of them adds, and may pass the sums on.
class row_sums_lowering {
 public:
  row_sums_lowering(predictor& p, const device_sum& sum, int ranks)
      : p_(p), sum_(sum), ranks_(ranks), work_(ranks) {
    for (int rank = 0; rank < ranks; ++rank)
      plans_.push_back(row_sums_plans(sum, ranks, rank, {.how = pattern::fused_warp_specialized},
                                      {p.processors()})
                           .front());
    const gpu::gemm_plan& gemm = plans_.front().gemm;
    const gpu::gemm_shape shape{sum.m, sum.n, sharding{sum.k, ranks, shard_granularity}.full(),
                                sum.type};
    seconds_ = p.seconds_beside(gemm, shape, shape, 0);
    tiles_ = gemm.schedule.tiles();
  }

  timing::workload lower() {
    for (int rank = 0; rank < ranks_; ++rank) {
      add_gemm(rank);
      if (plan_of(rank).adds_behind) add_sums(rank);
    }
    return std::move(work_);
  }

 private:
  [[nodiscard]] const row_sums_plan& plan_of(int rank) const {
    return plans_[static_cast<std::size_t>(rank)];
  }
  /// Rows of a tile of a cluster of `source` that `owner` owns.
  [[nodiscard]] std::int64_t rows_of(int source, int tile, int owner) const {
    const row_sums_plan& plan = plan_of(source);
    const gpu::tile_config& c = plan.gemm.config;
    const auto at = gpu::tile_scheduler(plan.gemm.schedule).at(tile);
    const int high = c.swap_ab ? c.block_n : tile_rows(c) * c.cluster;
    const int first = plan.rotation.rotated((c.swap_ab ? at.n : at.m) * high);
    return std::max(
        std::min(first + high, plan.owned.end(owner)) - std::max(first, plan.owned.first(owner)),
        0);
  }
  /// Columns of that tile within C.
  [[nodiscard]] std::int64_t columns_of(int source, int tile) const {
    const row_sums_plan& plan = plan_of(source);
    const gpu::tile_config& c = plan.gemm.config;
    const auto at = gpu::tile_scheduler(plan.gemm.schedule).at(tile);
    const std::int64_t wide = c.swap_ab ? std::int64_t{tile_rows(c)} * c.cluster : c.block_n;
    return std::clamp<std::int64_t>(sum_.n - (c.swap_ab ? at.m : at.n) * wide, 0, wide);
  }
  // Counters of a rank: of each tile from each source, then of each tile of each source's sums.
  [[nodiscard]] int sums_of(int source) const { return (ranks_ + source) * tiles_; }

  void add_gemm(int rank) {
    const int kernel = work_.add_kernel(rank, 0, "gemm", 0);
    timing::gemm_team team;
    team.order = gpu::tile_scheduler(plan_of(rank).gemm.schedule);
    team.seconds = seconds_;
    team.finished = [this, rank](int /*cluster*/, int tile) { send(rank, tile); };
    timing::add_gemm(work_, kernel, team);
    work_.add_worker(kernel);
    for (int source = 0; source < ranks_; ++source) {
      for (int tile = 0; source != rank && tile < tiles_; ++tile)
        if (rows_of(source, tile, rank) > 0) work_.wait({rank, source * tiles_ + tile, 1});
    }
    if (plan_of(rank).adds_behind) return work_.act({});
    add(std::min(own(rank), last_tiles(rank)));
    if (plan_of(rank).passes_on) await_sums(rank);
  }
  void send(int rank, int tile) {
    for (int hop = 1; hop < ranks_; ++hop) {
      const int owner = receiver_at_hop(rank, hop, ranks_);
      const std::int64_t rows = rows_of(rank, tile, owner);
      if (rows > 0) store(rank, tile, owner, rows, rank * tiles_ + tile);
    }
    const row_sums_plan& plan = plan_of(rank);
    const std::int64_t own = rows_of(rank, tile, rank);
    const bool leaves = plan.passes_on && !plan.adds_behind && own > 0;
    for (int hop = 1; leaves && hop < ranks_; ++hop)
      store(rank, tile, receiver_at_hop(rank, hop, ranks_), own, sums_of(rank) + tile);
  }
  void store(int rank, int tile, int peer, std::int64_t rows, int counter) {
    send(rank, peer, rows * columns_of(rank, tile), counter);
  }
  void send(int rank, int peer, std::int64_t elements, int counter) {
    work_.raise({peer, counter, 1});
    work_.act({.bytes = bytes_of(elements), .from = rank, .to = peer, .detached = true});
  }
  /// Elements that a rank owns; and elements of one tile of each block.
  [[nodiscard]] std::int64_t own(int rank) const {
    const gpu::owned_rows& owned = plan_of(rank).owned;
    return std::int64_t{owned.end(rank) - owned.first(rank)} * sum_.n;
  }
  [[nodiscard]] std::int64_t last_tiles(int rank) const {
    const gpu::gemm_plan& gemm = plan_of(rank).gemm;
    return std::int64_t{gemm.blocks()} * tile_rows(gemm.config) * gemm.config.block_n;
  }
  /// One worker adds for all blocks.
  void add(std::int64_t elements) {
    work_.act({.busy = bytes_of(elements) * (ranks_ + 1) / p_.numbers().memory_rate,
               .way = signal_way::at_once});
  }
  void add_sums(int rank) {
    const int kernel = work_.add_kernel(rank, 1, "add", p_.numbers().launch_graph);
    work_.add_worker(kernel);
    add(own(rank));
    if (!plan_of(rank).passes_on) return;
    for (int hop = 1; hop < ranks_; ++hop)
      send(rank, receiver_at_hop(rank, hop, ranks_), own(rank), sums_of(rank));
    for (int source = 0; source < ranks_; ++source)
      if (source != rank) work_.wait({rank, sums_of(source), 1});
    work_.act({});
  }
  void await_sums(int rank) {
    for (int source = 0; source < ranks_; ++source) {
      for (int tile = 0; source != rank && tile < tiles_; ++tile)
        if (rows_of(source, tile, source) > 0) work_.wait({rank, sums_of(source) + tile, 1});
    }
    work_.act({});
  }
  [[nodiscard]] double bytes_of(std::int64_t elements) const {
    return static_cast<double>(elements) * static_cast<double>(size_of(sum_.type));
  }

  predictor& p_;
  device_sum sum_;
  int ranks_;
  std::vector<row_sums_plan> plans_;  // by rank
  timing::workload work_;
  double seconds_ = 0;
  int tiles_ = 0;
};

}  // namespace

predicted simulate_row_sums(predictor& p, const device_sum& sum, int ranks) {
  return p.run(row_sums_lowering(p, sum, ranks).lower());
}

}  // namespace untax

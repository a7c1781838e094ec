#pragma once

#include <cstdint>

#include <untax/ops/problems.hpp>
#include <untax/tile/barrier_steps.hpp>
#include <untax/tile/counter_layout.hpp>
#include <untax/tile/order.hpp>
#include <untax/tile/protocol.hpp>
#include <untax/tile/shard.hpp>
#include <untax/tile/tile_ring.hpp>

namespace untax {

/// How the result is cut into tiles, where partial tiles lie, and which counters guard them.
class gemm_reduce_scatter_layout {
 public:
  constexpr gemm_reduce_scatter_layout(const gemm_reduce_scatter_problem& problem,
                                       const protocol_plan& plan)
      : problem_(problem),
        plan_(plan),
        rows_{problem.m, plan.world},
        depth_{problem.k, plan.world, shard_granularity} {
    const int tiles_of_full_shard = tiles_of({0, rows_.full()}).count();
    counter_layout layout;
    ready_ = layout.take(sets_.sets, plan.world, tiles_of_full_shard);
    free_ = layout.take(sets_.sets, plan.world, plan.workers);
    tile_done_ = layout.take(1, plan.world, tiles_of_full_shard);
    ring_ = {plan.rank,
             plan.workers,
             plan.senders,
             plan.tile_m,
             plan.tile_n,
             layout.take(1, plan.workers, tile_ring::depth),
             layout.take(1, plan.workers, tile_ring::depth)};
    barrier_ = {plan.rank, plan.world, layout.take(1, plan.world, 1)};
    counters_ = layout.size();
  }

  [[nodiscard]] constexpr int rank() const noexcept { return plan_.rank; }
  [[nodiscard]] constexpr int world() const noexcept { return plan_.world; }
  [[nodiscard]] constexpr int counters() const noexcept { return counters_; }
  [[nodiscard]] constexpr extent inbox() const noexcept {
    return {sets_.sets * world() * rows_.full(), problem_.n};
  }
  [[nodiscard]] constexpr extent outbox() const noexcept {
    switch (plan_.how) {
      case pattern::bulk_library:
      case pattern::bulk_synchronous:
      case pattern::producer_consumer:
        return {problem_.m, problem_.n};
      case pattern::fused_specialized:
        return {ring_.rows(), ring_.cols()};
      default:
        return {};
    }
  }
  [[nodiscard]] constexpr extent tile_extent() const noexcept {
    return plan_.how == pattern::bulk_library ? extent{problem_.m, problem_.n}
                                              : extent{plan_.tile_m, plan_.tile_n};
  }

  /// With very few rows an owner the GEMM for one owner alone would read all weights for little
  /// work: the rows of all owners are computed together.
  [[nodiscard]] constexpr bool together() const noexcept {
    return world() > 1 && rows_.full() <= few_rows && problem_.m <= plan_.tile_m;
  }
  [[nodiscard]] constexpr bool has_rooms() const noexcept { return !is_bulk(plan_.how); }
  [[nodiscard]] constexpr bool has_ring() const noexcept {
    return plan_.how == pattern::fused_specialized;
  }
  [[nodiscard]] constexpr tile_grid tiles_of(range rows) const noexcept {
    return {{rows, plan_.tile_m}, {{0, problem_.n}, plan_.tile_n}};
  }
  [[nodiscard]] constexpr tile_grid tiles_of(int owner) const noexcept {
    return tiles_of(rows_.of(owner));
  }
  [[nodiscard]] constexpr range rows_of(int owner, int tile) const noexcept {
    return tiles_of(owner).rows_of(tile);
  }
  [[nodiscard]] constexpr range cols_of(int owner, int tile) const noexcept {
    return tiles_of(owner).cols_of(tile);
  }

  // Where a tile of `owner` lies.

  /// The partial result of `source` at the owner.
  [[nodiscard]] constexpr place in_inbox(int source, int owner, int tile,
                                         std::uint64_t epoch) const noexcept {
    const std::int64_t block = sets_.set_of(epoch) * world() + source;
    return {operand::inbox, owner,
            block * rows_.full() + rows_of(owner, tile).begin - rows_.of(owner).begin,
            cols_of(owner, tile).begin};
  }
  /// This rank's partial result, where the whole of it is kept.
  [[nodiscard]] constexpr place in_outbox(int owner, int tile) const noexcept {
    return {operand::outbox, rank(), rows_of(owner, tile).begin, cols_of(owner, tile).begin};
  }
  [[nodiscard]] constexpr place in_result(int tile) const noexcept {
    return {operand::c, rank(), rows_of(rank(), tile).begin - rows_.of(rank()).begin,
            cols_of(rank(), tile).begin};
  }

  // The rooms, and the counters that guard them.

  [[nodiscard]] constexpr room slot(int source, int owner, int tile,
                                    std::uint64_t epoch) const noexcept {
    if (!has_rooms()) return {};
    const int set = sets_.set_of(epoch);
    const int ready = ready_.at(set, source, tile);
    return {.producer = source,
            .consumer = owner,
            .number = ready,
            .ready = ready,
            .free = free_.at(set, owner),
            .readers = plan_.workers,
            .use = sets_.use_of(epoch)};
  }
  /// Says that a partial tile lies in the outbox. Within a rank the end of the run orders its next
  /// use.
  [[nodiscard]] constexpr room tile_flag(int owner, int tile, std::uint64_t epoch) const noexcept {
    if (!has_rooms()) return {};
    const int ready = tile_done_.at(0, owner, tile);
    return {.producer = rank(), .consumer = rank(), .number = ready, .ready = ready, .use = epoch};
  }

  /// How many tiles of `owner` fall to a worker.
  [[nodiscard]] constexpr int share_of(int worker, int owner) const noexcept {
    return strided{worker, plan_.workers}.share_of(tiles_of(owner).count());
  }
  /// How many tiles a worker passes through its ring in an epoch.
  [[nodiscard]] constexpr int sent_by(int worker) const noexcept {
    int count = 0;
    for (int hop = 1; hop < world(); ++hop)
      count += share_of(worker, receiver_at_hop(rank(), hop, world()));
    return count;
  }

  struct owned_tile {
    int owner = 0;
    int tile = 0;
  };
  /// The `index`-th tile that a worker passes through its ring: owner by owner, or, computed
  /// together, tile by tile.
  [[nodiscard]] constexpr owned_tile sent_at(int worker, int index) const noexcept {
    int left = index;
    for (int round = 0;; ++round) {
      for (int hop = 1; hop < world(); ++hop) {
        const int owner = receiver_at_hop(rank(), hop, world());
        const int share =
            together() ? (share_of(worker, owner) > 0 ? 1 : 0) : share_of(worker, owner);
        if (left < share) return {owner, worker + (together() ? round : left) * plan_.workers};
        left -= share;
      }
    }
  }

 protected:
  static constexpr std::int64_t few_rows = 64;

  gemm_reduce_scatter_problem problem_;
  protocol_plan plan_;
  sharding rows_;
  sharding depth_;
  room_sets sets_{2};
  counter_block ready_;
  counter_block free_;
  counter_block tile_done_;
  tile_ring ring_;
  barrier_steps barrier_;
  int counters_ = 0;
};

}  // namespace untax

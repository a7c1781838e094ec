#pragma once

#include <cstdint>

#include <untax/tile/tile_ring.hpp>

#include "ops/common/summing_layout.hpp"

namespace untax {

/// C [m, n] = sum over ranks of A_r x B_r^T, where k is sharded.
struct summed_gemm {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  reduce_target target = reduce_target::owner;
};

/// Which tiles are multiplied at once, where products lie until they are added, and in which result
/// they end.
class gemm_reduce_layout : public summing_layout {
 public:
  constexpr gemm_reduce_layout(const summed_gemm& problem, const protocol_plan& plan)
      : summing_layout({problem.m, problem.n}, problem.target, plan,
                       has_senders(plan.how) ? plan.senders : plan.workers),
        depth_{problem.k, plan.world, shard_granularity},
        tile_done_(counters_.take(1, plan.world, most_tiles())),
        ring_{plan.rank,
              plan.workers,
              plan.senders,
              plan.tile_m,
              plan.tile_n,
              counters_.take(1, plan.workers, tile_ring::depth),
              counters_.take(1, plan.workers, tile_ring::depth)} {}

  [[nodiscard]] constexpr extent outbox() const noexcept {
    switch (plan_.how) {
      case pattern::bulk_library:
      case pattern::bulk_synchronous:
      case pattern::producer_consumer:
        return result_;
      case pattern::fused_specialized:
        return {ring_.rows(), ring_.cols()};
      default:
        return {};
    }
  }
  [[nodiscard]] constexpr extent tile_extent() const noexcept {
    return plan_.how == pattern::bulk_library ? result_ : extent{plan_.tile_m, plan_.tile_n};
  }
  [[nodiscard]] constexpr bool has_ring() const noexcept {
    return plan_.how == pattern::fused_specialized;
  }
  [[nodiscard]] constexpr bool has_senders() const noexcept { return has_senders(plan_.how); }

  /// Whether one multiplication makes the tiles of one number for all owners: these want the same
  /// rows, or so few that a GEMM for one owner alone would read all weights for little work.
  [[nodiscard]] constexpr bool shares_products() const noexcept {
    return straight() || (world() > 1 && rows_.full() <= few_rows && result_.rows <= plan_.tile_m);
  }
  /// The tiles that are multiplied at once, if products are shared.
  [[nodiscard]] constexpr tile_grid products() const noexcept {
    return {{{0, result_.rows}, straight() ? plan_.tile_m : result_.rows},
            {{0, result_.cols}, plan_.tile_n}};
  }

  /// The place of a tile in this rank's partial result, where all of that is kept.
  [[nodiscard]] constexpr place in_outbox(int owner, int tile) const noexcept {
    return {operand::outbox, rank(), rows_of(owner, tile).begin, cols_of(owner, tile).begin};
  }
  /// The place of a tile that this rank adds, in the result of rank `at`.
  [[nodiscard]] constexpr place in_result(int at, int tile) const noexcept {
    const bool shard = target_ == reduce_target::owner;
    return {operand::c, at, rows_of(rank(), tile).begin - (shard ? rows_.of(rank()).begin : 0),
            cols_of(rank(), tile).begin};
  }

  /// Signals that a partial tile is in the outbox; or, for an own tile, that its sum is in this
  /// rank's result. Within a rank the end of the run orders the next use of either.
  [[nodiscard]] constexpr room tile_flag(int owner, int tile, std::uint64_t epoch) const noexcept {
    if (!has_rooms()) return {};
    const int ready = tile_done_.at(0, owner, tile);
    return {.producer = rank(), .consumer = rank(), .number = ready, .ready = ready, .use = epoch};
  }

  // The tiles that a worker passes through its ring.

  /// The number of tiles of `owner` that a worker has.
  [[nodiscard]] constexpr int share_of(int worker, int owner) const noexcept {
    return strided{worker, plan_.workers}.share_of(tiles_of(owner).count());
  }
  /// The number of tiles that a worker passes through its ring in an epoch.
  [[nodiscard]] constexpr int sent_by(int worker) const noexcept {
    if (straight()) return world() > 1 ? share_of(worker, rank()) : 0;
    int count = 0;
    for (int hop = 1; hop < world(); ++hop)
      count += share_of(worker, receiver_at_hop(rank(), hop, world()));
    return count;
  }

  /// A tile, and the rank that adds it; this rank, if all do.
  struct owned_tile {
    int owner = 0;
    int tile = 0;
  };
  /// The `index`-th tile that a worker passes through its ring: owner by owner, or, where products
  /// are shared, tile by tile.
  [[nodiscard]] constexpr owned_tile sent_at(int worker, int index) const noexcept {
    if (straight()) return {rank(), worker + index * plan_.workers};
    int left = index;
    for (int round = 0;; ++round) {
      for (int hop = 1; hop < world(); ++hop) {
        const int owner = receiver_at_hop(rank(), hop, world());
        const int all = share_of(worker, owner);
        const int share = !shares_products() ? all : all > 0 ? 1 : 0;
        if (left < share)
          return {owner, worker + (shares_products() ? round : left) * plan_.workers};
        left -= share;
      }
    }
  }

 protected:
  sharding depth_;
  counter_block tile_done_;
  tile_ring ring_;

 private:
  static constexpr std::int64_t few_rows = 64;

  [[nodiscard]] static constexpr bool has_senders(pattern how) noexcept {
    return how != pattern::fused_sequential;
  }
};

}  // namespace untax

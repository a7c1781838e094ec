#pragma once

#include <cstdint>

#include <untax/ops/problems.hpp>
#include <untax/tile/barrier_steps.hpp>
#include <untax/tile/counter_layout.hpp>
#include <untax/tile/order.hpp>
#include <untax/tile/protocol.hpp>
#include <untax/tile/shard.hpp>
#include <untax/tile/tile_ring.hpp>

#include "ops/common/reduce_target.hpp"

namespace untax {

/// C [m, n] = sum over ranks of A_r x B_r^T, where k is sharded.
struct summed_gemm {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  reduce_target target = reduce_target::owner;
};

/// How the result is cut into tiles, where partial tiles lie, and which counters guard them.
///
/// An owner adds the partial results of its rows. Where the sum is wanted everywhere, it passes the
/// sum on (two phases), or everybody owns all rows (one phase).
class gemm_reduce_layout {
 public:
  constexpr gemm_reduce_layout(const summed_gemm& problem, const protocol_plan& plan)
      : problem_(problem),
        plan_(plan),
        rows_{problem.m, plan.world},
        depth_{problem.k, plan.world, shard_granularity},
        sets_{passes_on() ? 1 : 2} {
    const int tiles_of_full_shard = tiles_of({0, full_rows()}).count();
    counter_layout layout;
    ready_ = layout.take(sets_.sets, plan.world, tiles_of_full_shard);
    free_ = layout.take(asks() ? sets_.sets : 0, plan.world, plan.workers);
    tile_done_ = layout.take(1, plan.world, tiles_of_full_shard);
    ring_ = {plan.rank,
             plan.workers,
             plan.senders,
             plan.tile_m,
             plan.tile_n,
             layout.take(1, plan.workers, tile_ring::depth),
             layout.take(1, plan.workers, tile_ring::depth)};
    barrier_ = {plan.rank, plan.world, layout.take(1, plan.world, 1)};
    closing_ = {plan.rank, plan.world, layout.take(1, plan.world, passes_on() ? 1 : 0)};
    landed_ = layout.take(1, plan.world, passes_on() ? passers() : 0);
    counters_ = layout.size();
  }

  [[nodiscard]] constexpr int rank() const noexcept { return plan_.rank; }
  [[nodiscard]] constexpr int world() const noexcept { return plan_.world; }
  [[nodiscard]] constexpr int counters() const noexcept { return counters_; }
  [[nodiscard]] constexpr extent inbox() const noexcept {
    return {sets_.sets * world() * full_rows(), problem_.n};
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

  // Who adds what.

  /// One phase: partial results go to everybody, and everybody adds all of them.
  [[nodiscard]] constexpr bool straight() const noexcept {
    return problem_.target == reduce_target::everywhere && plan_.phases == 1;
  }
  /// Two phases: the owner of rows passes their sum on to everybody.
  [[nodiscard]] constexpr bool passes_on() const noexcept {
    return problem_.target == reduce_target::everywhere && plan_.phases == 2;
  }
  /// Whether a source asks for permission to fill a room again. Where the sum is wanted everywhere,
  /// what a rank gets in a run says already that its peers have emptied the rooms that it fills in
  /// the next run.
  [[nodiscard]] constexpr bool asks() const noexcept {
    return problem_.target == reduce_target::owner;
  }
  /// The rows that `owner` adds.
  [[nodiscard]] constexpr range rows_for(int owner) const noexcept {
    return straight() ? range{0, problem_.m} : rows_.of(owner);
  }
  [[nodiscard]] constexpr bool adds_nothing(int owner) const noexcept {
    return rows_for(owner).empty();
  }
  [[nodiscard]] constexpr tile_grid tiles_of(range rows) const noexcept {
    return {{rows, plan_.tile_m}, {{0, problem_.n}, plan_.tile_n}};
  }
  [[nodiscard]] constexpr tile_grid tiles_of(int owner) const noexcept {
    return tiles_of(rows_for(owner));
  }
  [[nodiscard]] constexpr range rows_of(int owner, int tile) const noexcept {
    return tiles_of(owner).rows_of(tile);
  }
  [[nodiscard]] constexpr range cols_of(int owner, int tile) const noexcept {
    return tiles_of(owner).cols_of(tile);
  }

  /// Whether one multiplication makes the tiles with one number of all owners: they want the same
  /// rows; or so few that a GEMM for one owner alone would read all weights for little work.
  [[nodiscard]] constexpr bool shares_products() const noexcept {
    return straight() || (world() > 1 && rows_.full() <= few_rows && problem_.m <= plan_.tile_m);
  }
  /// What is multiplied at once, if products are shared.
  [[nodiscard]] constexpr tile_grid products() const noexcept {
    return {{{0, problem_.m}, straight() ? plan_.tile_m : problem_.m},
            {{0, problem_.n}, plan_.tile_n}};
  }

  [[nodiscard]] constexpr bool has_rooms() const noexcept { return !is_bulk(plan_.how); }
  [[nodiscard]] constexpr bool has_ring() const noexcept {
    return plan_.how == pattern::fused_specialized;
  }
  [[nodiscard]] constexpr bool has_senders() const noexcept {
    return plan_.how != pattern::fused_sequential;
  }
  /// Workers of a rank that pass sums on.
  [[nodiscard]] constexpr int passers() const noexcept {
    return has_senders() ? plan_.senders : plan_.workers;
  }

  // Where a tile of `owner` lies.

  /// The partial result of `source` at the owner.
  [[nodiscard]] constexpr place in_inbox(int source, int owner, int tile,
                                         std::uint64_t epoch) const noexcept {
    const std::int64_t block = sets_.set_of(epoch) * world() + source;
    return {operand::inbox, owner,
            block * full_rows() + rows_of(owner, tile).begin - rows_for(owner).begin,
            cols_of(owner, tile).begin};
  }
  /// This rank's partial result, where the whole of it is kept.
  [[nodiscard]] constexpr place in_outbox(int owner, int tile) const noexcept {
    return {operand::outbox, rank(), rows_of(owner, tile).begin, cols_of(owner, tile).begin};
  }
  /// A tile that this rank adds, in the result of rank `at`.
  [[nodiscard]] constexpr place in_result(int at, int tile) const noexcept {
    const bool shard = problem_.target == reduce_target::owner;
    return {operand::c, at, rows_of(rank(), tile).begin - (shard ? rows_.of(rank()).begin : 0),
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
            .free = asks() ? free_.at(set, owner) : -1,
            .readers = plan_.workers,
            .use = sets_.use_of(epoch)};
  }
  /// Says that a partial tile lies in the outbox; or, of an own tile, that its sum lies in the own
  /// result. Within a rank the end of the run orders the next use of either.
  [[nodiscard]] constexpr room tile_flag(int owner, int tile, std::uint64_t epoch) const noexcept {
    if (!has_rooms()) return {};
    const int ready = tile_done_.at(0, owner, tile);
    return {.producer = rank(), .consumer = rank(), .number = ready, .ready = ready, .use = epoch};
  }
  /// Says that all sums that `passer` of rank `from` passes on lie in the result of rank `to`.
  [[nodiscard]] constexpr room landed(int from, int to, int passer,
                                      std::uint64_t epoch) const noexcept {
    const int ready = landed_.at(0, from, passer);
    return {.producer = from, .consumer = to, .number = ready, .ready = ready, .use = epoch};
  }

  // What a worker passes through its ring.

  /// How many tiles of `owner` fall to a worker.
  [[nodiscard]] constexpr int share_of(int worker, int owner) const noexcept {
    return strided{worker, plan_.workers}.share_of(tiles_of(owner).count());
  }
  /// How many tiles a worker passes through its ring in an epoch.
  [[nodiscard]] constexpr int sent_by(int worker) const noexcept {
    if (straight()) return world() > 1 ? share_of(worker, rank()) : 0;
    int count = 0;
    for (int hop = 1; hop < world(); ++hop)
      count += share_of(worker, receiver_at_hop(rank(), hop, world()));
    return count;
  }

  /// A tile, and who adds it; this rank, if all do.
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

 private:
  static constexpr std::int64_t few_rows = 64;

  /// The most rows that an owner adds.
  [[nodiscard]] constexpr std::int64_t full_rows() const noexcept {
    return straight() ? problem_.m : rows_.full();
  }

 protected:
  summed_gemm problem_;
  protocol_plan plan_;
  sharding rows_;
  sharding depth_;
  room_sets sets_;
  counter_block ready_;
  counter_block free_;
  counter_block tile_done_;
  counter_block landed_;
  tile_ring ring_;
  barrier_steps barrier_;
  barrier_steps closing_;
  int counters_ = 0;
};

}  // namespace untax

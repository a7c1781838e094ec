#pragma once

#include <cstdint>

#include <untax/ops/problems.hpp>
#include <untax/tile/barrier_steps.hpp>
#include <untax/tile/counter_layout.hpp>
#include <untax/tile/order.hpp>
#include <untax/tile/protocol.hpp>
#include <untax/tile/shard.hpp>

#include "ops/common/reduce_target.hpp"

namespace untax {

/// Rows that are summed over ranks in tiles: the rank that adds each, the places of partial tiles
/// until then, and the counters that guard them.
///
/// An owner adds the partial tiles of its rows. Where the sum is wanted
/// everywhere, it passes the sum on (two phases), or every rank owns all rows (one phase).
class summing_layout {
 public:
  [[nodiscard]] constexpr int rank() const noexcept { return plan_.rank; }
  [[nodiscard]] constexpr int world() const noexcept { return plan_.world; }
  [[nodiscard]] constexpr int counters() const noexcept { return counters_.size(); }
  [[nodiscard]] constexpr extent inbox() const noexcept {
    return {sets_.sets * world() * full_rows(), result_.cols};
  }

  // Which rank adds which rows.

  /// One phase: partial tiles go to all ranks, and every rank adds all of them.
  [[nodiscard]] constexpr bool straight() const noexcept {
    return target_ == reduce_target::everywhere && plan_.phases == 1;
  }
  /// Two phases: the owner of rows passes their sum on to all ranks.
  [[nodiscard]] constexpr bool passes_on() const noexcept {
    return target_ == reduce_target::everywhere && plan_.phases == 2;
  }
  /// Whether a source reserves a room before it fills it again. Where the sum goes to all ranks,
  /// what a rank receives in a run shows that its peers have emptied the rooms that it fills in the
  /// next run.
  [[nodiscard]] constexpr bool reserves() const noexcept { return target_ == reduce_target::owner; }
  /// The rows that `owner` adds.
  [[nodiscard]] constexpr range rows_for(int owner) const noexcept {
    return straight() ? range{0, result_.rows} : rows_.of(owner);
  }
  [[nodiscard]] constexpr bool adds_nothing(int owner) const noexcept {
    return rows_for(owner).empty();
  }
  [[nodiscard]] constexpr tile_grid tiles_of(range rows) const noexcept {
    return {{rows, plan_.tile_m}, {{0, result_.cols}, plan_.tile_n}};
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
  [[nodiscard]] constexpr bool has_rooms() const noexcept { return !is_bulk(plan_.how); }

  /// The place of the partial tile of `source` at the owner.
  [[nodiscard]] constexpr place in_inbox(int source, int owner, int tile,
                                         std::uint64_t epoch) const noexcept {
    const std::int64_t block = sets_.set_of(epoch) * world() + source;
    return {operand::inbox, owner,
            block * full_rows() + rows_of(owner, tile).begin - rows_for(owner).begin,
            cols_of(owner, tile).begin};
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
            .free = reserves() ? free_.at(set, owner) : -1,
            .readers = plan_.workers,
            .use = sets_.use_of(epoch)};
  }
  /// Signals that all that `passer` of rank `from` passes on is in the result of rank `to`.
  [[nodiscard]] constexpr room landed(int from, int to, int passer,
                                      std::uint64_t epoch) const noexcept {
    const int ready = landed_.at(0, from, passer);
    return {.producer = from, .consumer = to, .number = ready, .ready = ready, .use = epoch};
  }

 protected:
  /// `passers` workers of a rank pass sums on.
  constexpr summing_layout(extent result, reduce_target target, const protocol_plan& plan,
                           int passers)
      : result_(result),
        target_(target),
        plan_(plan),
        passers_(passers),
        rows_{result.rows, plan.world},
        sets_{passes_on() ? 1 : plan.sets},
        ready_(counters_.take(sets_.sets, plan.world, most_tiles())),
        free_(counters_.take(reserves() ? sets_.sets : 0, plan.world, plan.workers)),
        landed_(counters_.take(1, plan.world, passes_on() ? passers : 0)),
        barrier_{plan.rank, plan.world, counters_.take(1, plan.world, 1)},
        closing_{plan.rank, plan.world, counters_.take(1, plan.world, passes_on() ? 1 : 0)} {}

  /// sum = partial of rank 0 + partial of rank 1 + ..., in this order whatever arrives first.
  template <class Emit>
  constexpr void add_all(int tile, place own, std::uint64_t epoch, Emit&& emit) const {
    for (int source = 0; source < world(); ++source) {
      const bool mine = source == rank();
      emit(step{.what = action::add,
                .first = source == 0,
                .rows = rows_of(rank(), tile).size,
                .cols = cols_of(rank(), tile).size,
                .from = mine ? own : in_inbox(source, rank(), tile, epoch),
                .acquire = mine ? room{} : slot(source, rank(), tile, epoch)});
    }
  }

  /// Signals that all that this worker passes on has landed, and waits for its counterparts.
  template <class Emit>
  constexpr void close(int passer, std::uint64_t epoch, Emit&& emit) const {
    const auto passes = [&](int owner) {
      return strided{passer, passers_}.share_of(tiles_of(owner).count()) > 0;
    };
    for (int hop = 1; passes(rank()) && hop < world(); ++hop)
      emit(step{.publish = landed(rank(), receiver_at_hop(rank(), hop, world()), passer, epoch)});
    for (int hop = 1; hop < world(); ++hop) {
      const int owner = source_at_hop(rank(), hop, world());
      if (passes(owner)) emit(step{.acquire = landed(owner, rank(), passer, epoch)});
    }
  }

  /// The most tiles that an owner adds.
  [[nodiscard]] constexpr int most_tiles() const noexcept {
    return tiles_of({0, full_rows()}).count();
  }

  extent result_;
  reduce_target target_;
  protocol_plan plan_;
  int passers_;
  sharding rows_;
  room_sets sets_;
  counter_layout counters_;  ///< protocols take further counters from it
  counter_block ready_;
  counter_block free_;
  counter_block landed_;
  barrier_steps barrier_;
  barrier_steps closing_;  ///< after sums are passed on

 private:
  /// The most rows that an owner adds.
  [[nodiscard]] constexpr std::int64_t full_rows() const noexcept {
    return straight() ? result_.rows : rows_.full();
  }
};

}  // namespace untax

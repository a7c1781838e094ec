#pragma once

#include <cstdint>

#include <untax/ops/problems.hpp>
#include <untax/tile/barrier_steps.hpp>
#include <untax/tile/counter_layout.hpp>
#include <untax/tile/order.hpp>
#include <untax/tile/owner_exchange.hpp>
#include <untax/tile/protocol.hpp>
#include <untax/tile/shard.hpp>

#include "ops/common/reduce_target.hpp"

namespace untax {

/// Sets the phases of a plan for tiles. In two phases one set of rooms is enough: when sums have
/// arrived, all rooms are empty.
constexpr void set_phases(protocol_plan& plan, int phases) noexcept {
  plan.phases = phases;
  if (phases == 2) plan.sets = 1;
}

/// Rows that are summed over ranks in tiles: the rank that adds each, the places of partial tiles
/// until then, and the counters that guard them.
///
/// An owner adds the partial tiles of its rows. If the sum is wanted everywhere, it passes the sum
/// on (two phases), or every rank owns all rows (one phase).
///
/// Each tile has a counter. In rows (fused_warp_specialized) there is one counter for all tiles
/// that a worker of a source sends, and an owner opens its slabs in each run. To the protocol of
/// kernels all blocks are one worker.
class summing_layout : public owner_exchange<summing_layout> {
 public:
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int rank() const noexcept { return plan_.rank; }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int world() const noexcept { return plan_.world; }
  [[nodiscard]] constexpr int counters() const noexcept { return counters_.size(); }
  [[nodiscard]] constexpr extent inbox() const noexcept {
    return {sets().sets * world() * full_rows(), result_.cols};
  }

  // The rank that adds each row.

  /// One phase: partial tiles go to all ranks, and every rank adds all of them.
  [[nodiscard]] constexpr bool straight() const noexcept {
    return target_ == reduce_target::everywhere && plan_.phases == 1;
  }
  /// Two phases: the owner of rows passes their sum on to all ranks.
  [[nodiscard]] constexpr bool passes_on() const noexcept {
    return target_ == reduce_target::everywhere && plan_.phases == 2;
  }
  [[nodiscard]] constexpr bool in_rows() const noexcept {
    return plan_.how == pattern::fused_warp_specialized;
  }
  /// Whether a source reserves a room before it fills it again. If the sum goes to all ranks, the
  /// sums that a rank receives in a run show that its peers have emptied the rooms that it fills in
  /// the next run.
  [[nodiscard]] constexpr bool reserves() const noexcept {
    return target_ == reduce_target::owner || in_rows();
  }
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
    const std::int64_t block = sets().set_of(epoch) * world() + source;
    return {operand::inbox, owner,
            block * full_rows() + rows_of(owner, tile).begin - rows_for(owner).begin,
            cols_of(owner, tile).begin};
  }

  // The counters: see owner_exchange.

  [[nodiscard]] constexpr room_sets sets() const noexcept { return {in_rows() ? 1 : plan_.sets}; }
  [[nodiscard]] constexpr int ready_of(int set, int source, int tile) const noexcept {
    return ready_.at(set, source, in_rows() ? tile % plan_.workers : tile);
  }
  [[nodiscard]] constexpr int free_of(int set, int owner) const noexcept {
    return reserves() ? free_.at(set, owner) : -1;
  }
  [[nodiscard]] constexpr int takers() const noexcept { return in_rows() ? 1 : plan_.workers; }
  [[nodiscard]] constexpr std::uint64_t credit() const noexcept { return in_rows() ? 0 : 1; }
  [[nodiscard]] constexpr int landed_of(int owner, int passer) const noexcept {
    return ready_.at(0, owner, parts() + passer);
  }
  /// In rows, for kernels: output 0 is the slab of `source`, output 1 its sums, which signal that
  /// they have landed.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr room landing(int source, int consumer, int output,
                                                         std::uint64_t epoch) const noexcept {
    const int ready = ready_.at(0, source, output);
    return {.producer = source,
            .consumer = consumer,
            .number = ready,
            .ready = ready,
            .free = free_.at(0, consumer),
            .use = epoch,
            .credit = 0};
  }

  /// Signals that all sums that this worker passes on have landed, and waits for its counterparts.
  /// The first worker of a rank does so even if the rank has no rows.
  template <class Emit>
  constexpr void close(int passer, std::uint64_t epoch, Emit&& emit) const {
    const auto passes = [&](int owner) {
      return passer == 0 || strided{passer, passers_}.share_of(tiles_of(owner).count()) > 0;
    };
    close_sums(epoch, passer, passes, emit);
  }

 protected:
  /// `passers` workers of a rank pass sums on. Owners have multiples of `owner_step` rows.
  constexpr summing_layout(extent result, reduce_target target, const protocol_plan& plan,
                           int passers, std::int64_t owner_step = 1)
      : result_(result),
        target_(target),
        passers_(passers),
        plan_(plan),
        rows_{result.rows, plan.world, owner_step},
        ready_(counters_.take(sets().sets, plan.world, parts() + (passes_on() ? passers : 0))),
        free_(counters_.take(reserves() ? sets().sets : 0, plan.world, takers())),
        barrier_{plan.rank, plan.world, counters_.take(1, plan.world, 1)},
        closing_{plan.rank, plan.world, counters_.take(1, plan.world, passes_on() ? 1 : 0)} {}

  /// Adds a tile. In rows, all slabs have been acquired before.
  template <class Emit>
  constexpr void add_all(int tile, place own, std::uint64_t epoch, Emit&& emit) const {
    add(
        rows_of(rank(), tile).size, cols_of(rank(), tile).size,
        [&](int source) { return source == rank() ? own : in_inbox(source, rank(), tile, epoch); },
        [&](int source) {
          return source == rank() || in_rows() ? room{} : slab(source, rank(), epoch, tile);
        },
        emit);
  }

  /// The most tiles that an owner adds.
  [[nodiscard]] constexpr int most_tiles() const noexcept {
    return tiles_of({0, full_rows()}).count();
  }

  extent result_;
  reduce_target target_;
  int passers_;
  counter_layout counters_;  ///< the protocols of operators take further counters from it
  protocol_plan plan_;
  sharding rows_;
  counter_block
      ready_;  ///< counters of each source: of its parts, then of the sums that it passes on
  counter_block free_;
  barrier_steps barrier_;
  barrier_steps closing_;  ///< after sums are passed on

 private:
  /// The most rows that an owner adds.
  [[nodiscard]] constexpr std::int64_t full_rows() const noexcept {
    return straight() ? result_.rows : rows_.full();
  }
  /// The parts of a slab that have a counter.
  [[nodiscard]] constexpr int parts() const noexcept {
    return in_rows() ? plan_.workers : most_tiles();
  }
};

}  // namespace untax

#pragma once

#include <cstdint>

#include "ops/gemm_reduce_common/layout.hpp"

namespace untax {

/// The steps of one tile: multiply, hand over, send, add in rank order, pass on.
class gemm_reduce_steps : public gemm_reduce_layout {
 public:
  using gemm_reduce_layout::gemm_reduce_layout;

 protected:
  template <class Emit>
  constexpr void multiply(range rows, range cols, place to, room before, room after,
                          Emit&& emit) const {
    emit(step{.what = action::multiply,
              .first = true,
              .last = true,
              .rows = rows.size,
              .cols = cols.size,
              .depth = depth_.of(rank()).size,
              .from = {operand::a, rank(), rows.begin, 0},
              .weights = {operand::b, rank(), cols.begin, 0},
              .to = to,
              .reserve = before,
              .publish = after});
  }

  /// The destination of a partial tile of `owner`, and the room that it fills: in the owner's
  /// inbox, or in the ring or the outbox, from where a sender sends it. `sent` is the number of
  /// tiles that the worker has handed over before.
  struct destination {
    place to;
    room reserve;
    room publish;
  };
  [[nodiscard]] constexpr destination destination_of(int owner, int tile, int worker, int sent,
                                                     std::uint64_t epoch) const noexcept {
    if (has_ring()) {
      const room r = ring_.at(worker, sent, sent_by(worker), epoch);
      return {ring_.place_of(worker, sent), ring_is_asked() ? r : room{}, r};
    }
    if (has_senders()) return {in_outbox(owner, tile), {}, tile_flag(owner, tile, epoch)};
    const room r = slot(rank(), owner, tile, epoch);
    return {in_inbox(rank(), owner, tile, epoch), r, r};
  }

  /// Whether a worker reserves a place in its ring. In one phase it need not: it has added the tile
  /// before. Peers computed that when they had received the tile before it, which has therefore
  /// left the ring.
  [[nodiscard]] constexpr bool ring_is_asked() const noexcept { return !straight(); }

  /// Calls `visit` for the ranks that a worker hands a shared product over to, nearest first. If a
  /// sender takes one tile for all peers, it is handed over once, and this rank stands for all.
  template <class Visit>
  constexpr void each_receiver(Visit&& visit) const {
    if (straight() && has_senders()) {
      if (world() > 1) visit(rank());
      return;
    }
    for (int hop = 1; hop < world(); ++hop) {
      const int owner = receiver_at_hop(rank(), hop, world());
      if (!adds_nothing(owner)) visit(owner);
    }
  }

  /// Sends a partial tile to its owner; or to every peer, if this rank stands for all. `before`:
  /// the tile is ready; `after`: it is not needed any more.
  template <class Emit>
  constexpr void send(int owner, int tile, place from, room before, room after, std::uint64_t epoch,
                      Emit&& emit) const {
    if (owner != rank()) return copy(owner, tile, from, before, after, epoch, emit);
    if (before.named()) emit(step{.acquire = before});
    for (int hop = 1; hop < world(); ++hop)
      copy(receiver_at_hop(rank(), hop, world()), tile, from, {}, {}, epoch, emit);
    if (after.named()) emit(step{.retire = after});
  }

  /// Adds an own tile, and stores the sum in this rank's result.
  template <class Emit>
  constexpr void reduce(int tile, place own, std::uint64_t epoch, Emit&& emit) const {
    add_all(tile, own, epoch, emit);
    emit(step{.what = action::store,
              .rows = rows_of(rank(), tile).size,
              .cols = cols_of(rank(), tile).size,
              .from = {operand::sum, rank(), 0, 0},
              .to = in_result(rank(), tile),
              .publish = passes_on() && has_senders() ? tile_flag(rank(), tile, epoch) : room{}});
  }

  /// Copies the sum of an own tile to the results of all peers. It needs no permission: the partial
  /// tile of a peer, sent in this epoch, shows that its result is open.
  template <class Emit>
  constexpr void pass_on(int tile, Emit&& emit) const {
    for (int hop = 1; hop < world(); ++hop) {
      emit(step{.what = action::copy,
                .rows = rows_of(rank(), tile).size,
                .cols = cols_of(rank(), tile).size,
                .from = in_result(rank(), tile),
                .to = in_result(receiver_at_hop(rank(), hop, world()), tile)});
    }
  }

 private:
  template <class Emit>
  constexpr void copy(int owner, int tile, place from, room before, room after, std::uint64_t epoch,
                      Emit&& emit) const {
    const room filled = slot(rank(), owner, tile, epoch);
    emit(step{.what = action::copy,
              .rows = rows_of(owner, tile).size,
              .cols = cols_of(owner, tile).size,
              .from = from,
              .to = in_inbox(rank(), owner, tile, epoch),
              .reserve = filled,
              .acquire = before,
              .publish = filled,
              .retire = after});
  }
};

}  // namespace untax

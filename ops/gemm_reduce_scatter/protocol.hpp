#pragma once

#include <cstdint>

#include <untax/tile/order.hpp>
#include <untax/tile/protocol.hpp>

#include "ops/gemm_reduce_scatter/layout.hpp"

namespace untax {

/// Every rank computes a partial C from its shard of k; the owner of each row block ends with the
/// sum.
///
/// Rooms: (source rank, tile) in the inbox of the owner, in two sets by epoch parity. Tiles of the
/// next rank are computed first, own tiles last; then the owner adds all partial results in rank
/// order, its own unrounded.
class gemm_reduce_scatter_protocol : public gemm_reduce_scatter_layout {
 public:
  using gemm_reduce_scatter_layout::gemm_reduce_scatter_layout;

  [[nodiscard]] constexpr int kernels() const noexcept {
    return is_bulk(plan_.how) ? 4 : plan_.how == pattern::producer_consumer ? 2 : 1;
  }
  [[nodiscard]] constexpr kernel kernel_at(int i) const noexcept {
    switch (plan_.how) {
      case pattern::bulk_library:
      case pattern::bulk_synchronous:
        return i == 0   ? kernel{"gemm", 0, plan_.workers}
               : i == 1 ? kernel{"exchange", 1, plan_.senders}
               : i == 2 ? kernel{"barrier", 2, 1}
                        : kernel{"reduce", 3, plan_.workers};
      case pattern::producer_consumer:
        return i == 0 ? kernel{"gemm", 0, plan_.workers} : kernel{"exchange", 0, plan_.senders};
      case pattern::fused_sequential:
        return {"gemm_reduce_scatter", 0, plan_.workers};
      default:
        return {"gemm_reduce_scatter", 0, plan_.workers + plan_.senders};
    }
  }

  template <class Emit>
  constexpr void program(int kernel_index, int worker, std::uint64_t epoch, Emit&& emit) const {
    const bool moves = worker >= plan_.workers;
    switch (plan_.how) {
      case pattern::bulk_library:
      case pattern::bulk_synchronous:
        if (kernel_index == 0) compute_all(worker, emit);
        if (kernel_index == 1) exchange({worker, plan_.senders}, epoch, emit);
        if (kernel_index == 2) barrier_.program(epoch, emit);
        if (kernel_index == 3) reduce_all(worker, epoch, emit);
        return;
      case pattern::producer_consumer:
        if (kernel_index == 0) {
          compute(worker, epoch, emit);
        } else {
          exchange({worker, plan_.senders}, epoch, emit);
        }
        return;
      default:
        if (moves) {
          send_from_ring(worker - plan_.workers, epoch, emit);
        } else {
          compute(worker, epoch, emit);
        }
    }
  }

 private:
  template <class Emit>
  constexpr void multiply(int owner, int tile, place to, room before, room after,
                          Emit&& emit) const {
    emit(step{.what = action::multiply,
              .first = true,
              .last = true,
              .rows = rows_of(owner, tile).size,
              .cols = cols_of(owner, tile).size,
              .depth = depth_.of(rank()).size,
              .from = {operand::a, rank(), rows_of(owner, tile).begin, 0},
              .weights = {operand::b, rank(), cols_of(owner, tile).begin, 0},
              .to = to,
              .reserve = before,
              .publish = after});
  }

  template <class Emit>
  constexpr void copy(int owner, int tile, place from, room before, room slot_room, room after,
                      std::uint64_t epoch, Emit&& emit) const {
    emit(step{.what = action::copy,
              .rows = rows_of(owner, tile).size,
              .cols = cols_of(owner, tile).size,
              .from = from,
              .to = in_inbox(rank(), owner, tile, epoch),
              .reserve = slot_room,
              .acquire = before,
              .publish = slot_room,
              .retire = after});
  }

  /// The whole partial result, into memory: tile by tile, or as one library GEMM (with several
  /// workers, one for each block of columns); few rows, too, all at once.
  template <class Emit>
  constexpr void compute_all(int worker, Emit&& emit) const {
    if (plan_.how == pattern::bulk_library || together()) {
      const bool library = plan_.how == pattern::bulk_library;
      const pieces blocks{
          {0, problem_.n},
          library ? ceil_div<std::int64_t>(problem_.n, plan_.workers) : plan_.tile_n};
      strided{worker, plan_.workers}.each(blocks.count(), [&](int block) {
        const range cols = blocks.at(block);
        emit(step{.what = action::multiply,
                  .first = true,
                  .last = true,
                  .rows = problem_.m,
                  .cols = cols.size,
                  .depth = depth_.of(rank()).size,
                  .from = {operand::a, rank(), 0, 0},
                  .weights = {operand::b, rank(), cols.begin, 0},
                  .to = {operand::outbox, rank(), 0, cols.begin}});
      });
      return;
    }
    for (int hop = 1; hop <= world(); ++hop) {
      const int owner = receiver_at_hop(rank(), hop, world());
      strided{worker, plan_.workers}.each(tiles_of(owner).count(), [&](int tile) {
        multiply(owner, tile, in_outbox(owner, tile), {}, {}, emit);
      });
    }
  }

  template <class Emit>
  constexpr void compute(int worker, std::uint64_t epoch, Emit&& emit) const {
    if (together()) {
      compute_together(worker, epoch, emit);
    } else {
      compute_for_others(worker, epoch, emit);
      compute_and_reduce(worker, epoch, emit);
    }
    if (rows_.of(rank()).empty()) return;
    for (int hop = 1; hop < world(); ++hop) {
      emit(step{.retire = slot(source_at_hop(rank(), hop, world()), rank(), 0, epoch),
                .reader = worker});
    }
  }

  /// Where a partial tile of another owner goes, and the room that it fills there: straight into
  /// the owner's inbox, or into the ring or the outbox, from where a sender sends it. `sent` counts
  /// what the worker has passed on.
  struct destination {
    place to;
    room reserve;
    room publish;
  };
  [[nodiscard]] constexpr destination destination_of(int owner, int tile, int worker, int sent,
                                                     std::uint64_t epoch) const noexcept {
    if (has_ring()) {
      const room r = ring_.at(worker, sent, sent_by(worker), epoch);
      return {ring_.place_of(worker, sent), r, r};
    }
    if (plan_.how == pattern::producer_consumer)
      return {in_outbox(owner, tile), {}, tile_flag(owner, tile, epoch)};
    const room r = slot(rank(), owner, tile, epoch);
    return {in_inbox(rank(), owner, tile, epoch), r, r};
  }

  /// Few rows: all of a column block at once; then the rows of the others go out, and its own are
  /// reduced.
  template <class Emit>
  constexpr void compute_together(int worker, std::uint64_t epoch, Emit&& emit) const {
    const pieces cols{{0, problem_.n}, plan_.tile_n};
    int sent = 0;
    strided{worker, plan_.workers}.each(cols.count(), [&](int tile) {
      emit(step{.what = action::multiply,
                .first = true,
                .last = true,
                .rows = problem_.m,
                .cols = cols.at(tile).size,
                .depth = depth_.of(rank()).size,
                .from = {operand::a, rank(), 0, 0},
                .weights = {operand::b, rank(), cols.at(tile).begin, 0},
                .to = {operand::product, rank(), 0, 0}});
      for (int hop = 1; hop < world(); ++hop) {
        const int owner = receiver_at_hop(rank(), hop, world());
        const range rows = rows_.of(owner);
        if (rows.empty()) continue;
        const destination d = destination_of(owner, tile, worker, sent++, epoch);
        emit(step{.what = action::store,
                  .rows = rows.size,
                  .cols = cols.at(tile).size,
                  .from = {operand::product, rank(), rows.begin, 0},
                  .to = d.to,
                  .reserve = d.reserve,
                  .publish = d.publish});
      }
      if (!rows_.of(rank()).empty())
        reduce(tile, {operand::product, rank(), rows_.of(rank()).begin, 0}, epoch, emit);
    });
  }

  /// Tiles that others own, the next rank's first.
  template <class Emit>
  constexpr void compute_for_others(int worker, std::uint64_t epoch, Emit&& emit) const {
    int sent = 0;
    for (int hop = 1; hop < world(); ++hop) {
      const int owner = receiver_at_hop(rank(), hop, world());
      strided{worker, plan_.workers}.each(tiles_of(owner).count(), [&](int tile) {
        const destination d = destination_of(owner, tile, worker, sent++, epoch);
        multiply(owner, tile, d.to, d.reserve, d.publish, emit);
      });
    }
  }

  /// Sends partial tiles from the outbox to their owners, in the order in which they are computed:
  /// a worker that waits for the tiles of its peers must not keep its own from them.
  template <class Emit>
  constexpr void exchange(strided share, std::uint64_t epoch, Emit&& emit) const {
    const auto send = [&](int owner, int tile) {
      copy(owner, tile, in_outbox(owner, tile), tile_flag(owner, tile, epoch),
           slot(rank(), owner, tile, epoch), {}, epoch, emit);
    };
    if (together()) {
      share.each(pieces{{0, problem_.n}, plan_.tile_n}.count(), [&](int tile) {
        for (int hop = 1; hop < world(); ++hop) {
          const int owner = receiver_at_hop(rank(), hop, world());
          if (!rows_.of(owner).empty()) send(owner, tile);
        }
      });
      return;
    }
    for (int hop = 1; hop < world(); ++hop) {
      const int owner = receiver_at_hop(rank(), hop, world());
      share.each(tiles_of(owner).count(), [&](int tile) { send(owner, tile); });
    }
  }

  template <class Emit>
  constexpr void send_from_ring(int sender, std::uint64_t epoch, Emit&& emit) const {
    ring_.each(
        sender, [&](int worker) { return sent_by(worker); },
        [&](int worker, int index) {
          const auto [owner, tile] = sent_at(worker, index);
          const room r = ring_.at(worker, index, sent_by(worker), epoch);
          copy(owner, tile, ring_.place_of(worker, index), r, slot(rank(), owner, tile, epoch), r,
               epoch, emit);
        });
  }

  /// Own tiles: the product stays with the worker and takes its place in the sum.
  template <class Emit>
  constexpr void compute_and_reduce(int worker, std::uint64_t epoch, Emit&& emit) const {
    strided{worker, plan_.workers}.each(tiles_of(rank()).count(), [&](int tile) {
      multiply(rank(), tile, {operand::product, rank(), 0, 0}, {}, {}, emit);
      reduce(tile, {operand::product, rank(), 0, 0}, epoch, emit);
    });
  }

  template <class Emit>
  constexpr void reduce_all(int worker, std::uint64_t epoch, Emit&& emit) const {
    strided{worker, plan_.workers}.each(tiles_of(rank()).count(), [&](int tile) {
      reduce(tile, in_outbox(rank(), tile), epoch, emit);
    });
  }

  /// sum = partial of rank 0 + partial of rank 1 + ..., whatever arrives first.
  template <class Emit>
  constexpr void reduce(int tile, place own, std::uint64_t epoch, Emit&& emit) const {
    const std::int64_t rows = rows_of(rank(), tile).size;
    const std::int64_t cols = cols_of(rank(), tile).size;
    for (int source = 0; source < world(); ++source) {
      const bool mine = source == rank();
      emit(step{.what = action::add,
                .first = source == 0,
                .rows = rows,
                .cols = cols,
                .from = mine ? own : in_inbox(source, rank(), tile, epoch),
                .acquire = mine ? room{} : slot(source, rank(), tile, epoch)});
    }
    emit(step{.what = action::store,
              .rows = rows,
              .cols = cols,
              .from = {operand::sum, rank(), 0, 0},
              .to = in_result(tile)});
  }
};

static_assert(protocol<gemm_reduce_scatter_protocol>);

}  // namespace untax

#pragma once

#include <cstdint>

#include <untax/tile/order.hpp>
#include <untax/tile/protocol.hpp>

#include "ops/all_gather_gemm/layout.hpp"

namespace untax {

/// C_r = gather(A) x B_r^T, where every rank holds a shard of A: rows of it, or columns (k).
///
/// Rooms: (source rank, piece of its shard) of the gathered A at each consumer, in two sets by
/// epoch parity. A rank's own shard is used where it lies. See README.md in this folder for the
/// drawing.
class all_gather_gemm_protocol : public all_gather_gemm_layout {
 public:
  using all_gather_gemm_layout::all_gather_gemm_layout;

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int kernels() const noexcept {
    return is_bulk(plan_.how) ? 3 : plan_.how == pattern::producer_consumer ? 2 : 1;
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr kernel kernel_at(int i) const noexcept {
    switch (plan_.how) {
      case pattern::bulk_library:
      case pattern::bulk_synchronous:
        return i == 0   ? kernel{"gather", 0, plan_.movers}
               : i == 1 ? kernel{"barrier", 1, 1}
                        : kernel{"gemm", 2, plan_.workers};
      case pattern::producer_consumer:
        return i == 0 ? kernel{"gather", 0, plan_.movers} : kernel{"gemm", 0, plan_.workers};
      case pattern::fused_sequential:
        return {"all_gather_gemm", 0, plan_.workers};
      default:
        return {"all_gather_gemm", 0, plan_.movers + plan_.workers};
    }
  }

  template <class Emit>
  UNTAX_HOST_DEVICE constexpr void program(int kernel_index, int worker, std::uint64_t epoch,
                                           Emit&& emit) const {
    switch (plan_.how) {
      case pattern::bulk_library:
      case pattern::bulk_synchronous:
        if (kernel_index == 0) push({worker, plan_.movers}, epoch, emit);
        if (kernel_index == 1) barrier_.program(epoch, emit);
        if (kernel_index == 2) compute(worker, epoch, emit);
        return;
      case pattern::producer_consumer:
        if (kernel_index == 0) move(worker, epoch, emit);
        if (kernel_index == 1) compute(worker, epoch, emit);
        return;
      case pattern::fused_sequential:
        push({worker, plan_.workers}, epoch, emit);
        compute(worker, epoch, emit);
        return;
      default:
        if (worker < plan_.movers) {
          move(worker, epoch, emit);
        } else {
          compute(worker - plan_.movers, epoch, emit);
        }
    }
  }

  /// What one of the movers does; the steps only move.
  template <class Emit>
  UNTAX_HOST_DEVICE constexpr void move(int mover, std::uint64_t epoch, Emit&& emit) const {
    if (pulls()) {
      offer({mover, plan_.movers}, epoch, emit);
      pull(mover, epoch, emit);
    } else {
      push({mover, plan_.movers}, epoch, emit);
    }
  }

 private:
  /// Sends the rank's shard to everybody, nearest peer first; to itself too where all of A has to
  /// lie in one place. With gather = rows, all to one peer and then all to the next, since a tile
  /// needs rows of one source; with gather = k piece by piece, since it needs all sources.
  template <class Emit>
  UNTAX_HOST_DEVICE constexpr void push(strided share, std::uint64_t epoch, Emit&& emit) const {
    const auto send = [&](int index, int hop) {
      const int peer = receiver_at_hop(rank(), hop, world());
      const piece p = piece_at(rank(), index);
      const room r = inbox_room(rank(), peer, index, epoch);
      emit(step{.what = action::copy,
                .rows = p.rows.size,
                .cols = p.cols.size,
                .from = in_own_shard(p),
                .to = in_inbox(peer, p, epoch),
                .reserve = r,
                .publish = r});
    };
    if (by_rows()) {
      for (int hop = first_hop(); hop < world(); ++hop)
        share.each(pieces_of(rank()), [&](int index) { send(index, hop); });
    } else {
      share.each(pieces_of(rank()), [&](int index) {
        for (int hop = first_hop(); hop < world(); ++hop) send(index, hop);
      });
    }
  }

  /// Lays the rank's shard out for the others, so that the caller's A is its own again when the run
  /// ends.
  template <class Emit>
  UNTAX_HOST_DEVICE constexpr void offer(strided share, std::uint64_t epoch, Emit&& emit) const {
    share.each(pieces_of(rank()), [&](int index) {
      const piece p = piece_at(rank(), index);
      for (int hop = 1; hop < world(); ++hop) {
        emit(step{.reserve =
                      offer_room(rank(), receiver_at_hop(rank(), hop, world()), index, epoch)});
      }
      emit(step{.what = action::copy,
                .rows = p.rows.size,
                .cols = p.cols.size,
                .from = in_own_shard(p),
                .to = in_outbox(p, epoch)});
      for (int hop = 1; hop < world(); ++hop) {
        emit(step{.publish =
                      offer_room(rank(), receiver_at_hop(rank(), hop, world()), index, epoch)});
      }
    });
  }

  /// Fetches what the others offer.
  template <class Emit>
  UNTAX_HOST_DEVICE constexpr void pull(int mover, std::uint64_t epoch, Emit&& emit) const {
    const strided share{mover, plan_.movers};
    if (collected()) {
      share.each(pieces_of(rank()), [&](int index) {
        const piece p = piece_at(rank(), index);
        emit(step{.what = action::copy,
                  .rows = p.rows.size,
                  .cols = p.cols.size,
                  .from = in_own_shard(p),
                  .to = in_inbox(rank(), p, epoch),
                  .publish = inbox_room(rank(), rank(), index, epoch)});
      });
    }
    for (int hop = 1; hop < world(); ++hop) {
      const int source = source_at_hop(rank(), hop, world());
      share.each(pieces_of(source), [&](int index) {
        const piece p = piece_at(source, index);
        const room r = inbox_room(source, rank(), index, epoch);
        emit(step{.what = action::copy,
                  .rows = p.rows.size,
                  .cols = p.cols.size,
                  .from = in_outbox(p, epoch),
                  .to = in_inbox(rank(), p, epoch),
                  .reserve = r,
                  .acquire = offer_room(source, rank(), index, epoch),
                  .publish = r});
      });
      if (pieces_of(source) == 0) continue;
      emit(step{.retire = offer_room(source, rank(), 0, epoch), .reader = mover});
    }
  }

  template <class Emit>
  UNTAX_HOST_DEVICE constexpr void compute(int worker, std::uint64_t epoch, Emit&& emit) const {
    if (library()) {
      multiply_whole({worker, plan_.workers}, epoch, emit);
    } else if (together()) {
      multiply_together({worker, plan_.workers}, epoch, emit);
    } else if (by_rows()) {
      multiply_rows({worker, plan_.workers}, epoch, emit);
    } else {
      multiply_panels({worker, plan_.workers}, epoch, emit);
    }
    if (!has_rooms() || pulls()) return;
    for (int hop = 1; hop < world(); ++hop) {
      const int source = source_at_hop(rank(), hop, world());
      if (pieces_of(source) == 0) continue;
      emit(step{.retire = inbox_room(source, rank(), 0, epoch), .reader = worker});
    }
  }

  /// One GEMM over the gathered A; with several workers, one for each block of columns.
  template <class Emit>
  UNTAX_HOST_DEVICE constexpr void multiply_whole(strided share, std::uint64_t epoch,
                                                  Emit&& emit) const {
    const pieces blocks{{0, problem_.n}, ceil_div<std::int64_t>(problem_.n, plan_.workers)};
    share.each(blocks.count(), [&](int block) {
      const range cols = blocks.at(block);
      emit(step{.what = action::multiply,
                .first = true,
                .last = true,
                .rows = problem_.m,
                .cols = cols.size,
                .depth = problem_.k,
                .from = {operand::inbox, rank(), sets_.set_of(epoch) * problem_.m, 0},
                .weights = {operand::b, rank(), cols.begin, 0},
                .to = {operand::c, rank(), 0, cols.begin}});
    });
  }

  /// gather = rows, few rows: all pieces into the worker's panel, then one column block after the
  /// other.
  template <class Emit>
  UNTAX_HOST_DEVICE constexpr void multiply_together(strided share, std::uint64_t epoch,
                                                     Emit&& emit) const {
    const pieces cols{{0, problem_.n}, plan_.tile_n};
    if (share.share_of(cols.count()) == 0) return;
    for (int hop = 0; hop < world(); ++hop) {
      const int source = source_at_hop(rank(), hop, world());
      for (int index = 0; index < pieces_of(source); ++index) {
        const piece p = piece_at(source, index);
        emit(step{.what = action::copy,
                  .rows = p.rows.size,
                  .cols = p.cols.size,
                  .from = place_of(p, epoch),
                  .to = {operand::panel, rank(), p.rows.begin, p.cols.begin},
                  .acquire = arrival_of(p, epoch)});
      }
    }
    share.each(cols.count(), [&](int col) {
      emit(step{.what = action::multiply,
                .first = true,
                .last = true,
                .rows = problem_.m,
                .cols = cols.at(col).size,
                .depth = problem_.k,
                .from = {operand::panel, rank(), 0, 0},
                .weights = {operand::b, rank(), cols.at(col).begin, 0},
                .to = {operand::c, rank(), 0, cols.at(col).begin}});
    });
  }

  /// gather = rows: a tile needs one row of pieces. Own rows first, then in the order of arrival.
  template <class Emit>
  UNTAX_HOST_DEVICE constexpr void multiply_rows(strided share, std::uint64_t epoch,
                                                 Emit&& emit) const {
    const pieces cols{{0, problem_.n}, plan_.tile_n};
    for (int hop = 0; hop < world(); ++hop) {
      const int source = source_at_hop(rank(), hop, world());
      const tile_grid grid{row_pieces(source), cols};
      share.each(grid.count(), [&](int tile) {
        std::int64_t done = 0;
        multiply_pieces(source, tile % grid.rows.count(), grid.rows_of(tile), grid.cols_of(tile),
                        done, epoch, emit);
      });
    }
  }

  /// gather = k: every tile needs pieces of all sources, one k-panel after the other, its own
  /// first.
  template <class Emit>
  UNTAX_HOST_DEVICE constexpr void multiply_panels(strided share, std::uint64_t epoch,
                                                   Emit&& emit) const {
    const tile_grid grid{{{0, problem_.m}, plan_.tile_m}, {{0, problem_.n}, plan_.tile_n}};
    share.each(grid.count(), [&](int tile) {
      const range rows = grid.rows_of(tile);
      std::int64_t done = 0;
      for (int hop = 0; hop < world(); ++hop) {
        const int source = source_at_hop(rank(), hop, world());
        const auto row_piece = static_cast<int>(rows.begin / row_pieces(source).step);
        multiply_pieces(source, row_piece, rows, grid.cols_of(tile), done, epoch, emit);
      }
    });
  }

  /// Adds to a tile what one row of a source's pieces contributes. `done` is how much of k there
  /// was before.
  template <class Emit>
  UNTAX_HOST_DEVICE constexpr void multiply_pieces(int source, int row_piece, range rows,
                                                   range cols, std::int64_t& done,
                                                   std::uint64_t epoch, Emit&& emit) const {
    const int in_row = col_pieces(source).count();
    for (int i = 0; i < in_row; ++i) {
      const piece p = piece_at(source, row_piece * in_row + i);
      const bool first = done == 0;
      done += p.cols.size;
      multiply(p, rows, cols, first, done == problem_.k, epoch, emit);
    }
  }

  template <class Emit>
  UNTAX_HOST_DEVICE constexpr void multiply(const piece& p, range rows, range cols, bool first,
                                            bool last, std::uint64_t epoch, Emit&& emit) const {
    place from = place_of(p, epoch);
    from.row += rows.begin - p.rows.begin;
    emit(step{.what = action::multiply,
              .first = first,
              .last = last,
              .rows = rows.size,
              .cols = cols.size,
              .depth = p.cols.size,
              .from = from,
              .weights = {operand::b, rank(), cols.begin, p.cols.begin},
              .to = {operand::c, rank(), rows.begin, cols.begin},
              .acquire = arrival_of(p, epoch)});
  }
};

static_assert(protocol<all_gather_gemm_protocol>);

}  // namespace untax

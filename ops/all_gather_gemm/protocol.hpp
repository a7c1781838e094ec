#pragma once

#include <cstdint>

#include <untax/tile/order.hpp>
#include <untax/tile/protocol.hpp>

#include "ops/all_gather_gemm/layout.hpp"

namespace untax {

/// C_r = gather(A) x B_r^T, where every rank holds a shard of A: rows of it, or columns (k).
///
/// Rooms: (source rank, chunk of its shard) of the gathered A at each consumer, in two sets by
/// epoch parity. A rank's own shard is used in place. README.md in this folder has a drawing.
class all_gather_gemm_protocol : public all_gather_gemm_layout {
 public:
  using all_gather_gemm_layout::all_gather_gemm_layout;

  [[nodiscard]] constexpr int kernels() const noexcept {
    return is_bulk(plan_.how) ? 3 : plan_.how == pattern::producer_consumer ? 2 : 1;
  }
  [[nodiscard]] constexpr kernel kernel_at(int i) const noexcept {
    switch (plan_.how) {
      case pattern::bulk_library:
      case pattern::bulk_synchronous:
        return i == 0   ? kernel{"gather", 0, plan_.senders}
               : i == 1 ? kernel{"barrier", 1, 1}
                        : kernel{"gemm", 2, plan_.workers};
      case pattern::producer_consumer:
        return i == 0 ? kernel{"gather", 0, plan_.senders}
                      : kernel{"gemm", plan_.senders_acquire ? 1 : 0, plan_.workers};
      case pattern::fused_sequential:
        return {"all_gather_gemm", 0, plan_.workers};
      default:
        return {"all_gather_gemm", 0, plan_.senders + plan_.workers};
    }
  }

  // nvcc heeds the mark of `push` only if the declaration before it is written out as a template.
  template <class Emit>
  constexpr void program(int kernel_index, int worker, std::uint64_t epoch, Emit&& emit) const {
    switch (plan_.how) {
      case pattern::bulk_library:
      case pattern::bulk_synchronous:
        if (kernel_index == 0) push({worker, plan_.senders}, epoch, emit);
        if (kernel_index == 1) barrier_.program(epoch, emit);
        if (kernel_index == 2) compute(worker, epoch, emit);
        return;
      case pattern::producer_consumer:
        if (kernel_index == 0) send(worker, epoch, emit);
        if (kernel_index == 1) compute(worker, epoch, emit);
        return;
      case pattern::fused_sequential:
        push({worker, plan_.workers}, epoch, emit);
        compute(worker, epoch, emit);
        return;
      default:
        if (worker < plan_.senders) {
          send(worker, epoch, emit);
        } else {
          compute(worker - plan_.senders, epoch, emit);
        }
    }
  }

  /// Sends the rank's shard to all peers, nearest first, and to the rank itself if all of A has to
  /// lie in one place. With gather = rows a peer gets all chunks before the next peer does, since a
  /// tile needs rows of one source. With gather = k, or `fan_out`, each chunk goes to all peers
  /// before the next chunk: a tile needs all sources, or all peers start at once.
  UNTAX_CALLS_ANY_SIDE
  template <class Emit>
  UNTAX_HOST_DEVICE constexpr void push(strided share, std::uint64_t epoch, Emit&& emit) const {
    const int hops = world() - first_hop();
    const int mine = share.share_of(listed_rows(rank()) * col_chunks(rank()).count());
    const bool peer_by_peer = !fans_out();
    for (int i = 0; i < mine * hops; ++i) {
      const int peer =
          receiver_at_hop(rank(), first_hop() + (peer_by_peer ? i / mine : i % hops), world());
      const int index = chunk_in_turn(rank(), share.at(peer_by_peer ? i % mine : i / hops));
      if (index >= chunks_of(rank())) continue;
      const chunk p = chunk_at(rank(), index);
      const room r = inbox_room(rank(), peer, index, epoch);
      emit(step{.what = action::copy,
                .rows = p.rows.size,
                .cols = p.cols.size,
                .from = in_own_shard(p),
                .to = in_inbox(peer, p, epoch),
                .reserve = r,
                .publish = r});
    }
  }

  /// The steps of a sender that move data.
  UNTAX_CALLS_ANY_SIDE
  template <class Emit>
  UNTAX_HOST_DEVICE constexpr void move(int sender, std::uint64_t epoch, Emit&& emit) const {
    if (pulls()) {
      offer({sender, plan_.senders}, epoch, emit);
      pull({sender, plan_.senders}, epoch, emit);
    } else {
      push({sender, plan_.senders}, epoch, emit);
    }
  }
  [[nodiscard]] constexpr int senders() const noexcept { return plan_.senders; }
  /// All steps of a sender in a run.
  constexpr void send(int sender, std::uint64_t epoch, auto&& emit) const {
    move(sender, epoch, [&](step s) {
      // The run before has reserved the rooms.
      if (plan_.reserves_next) s.reserve = room{};
      emit(s);
    });
    if (plan_.senders_acquire) await({sender, plan_.senders}, epoch, emit);
  }

  /// Retires the rooms that this worker has read. Worker 0 may reserve the rooms of the next run.
  constexpr void finish(int worker, std::uint64_t epoch, auto&& emit) const {
    if (!has_rooms() || !counts_readers()) return;
    for (int hop = 1; hop < world(); ++hop) {
      const int source = source_at_hop(rank(), hop, world());
      if (!answers(source)) continue;
      emit(step{.retire = inbox_room(source, rank(), 0, epoch), .reader = worker});
    }
    if (!plan_.reserves_next || worker > 0 || !answers(rank())) return;
    for (int hop = 1; hop < world(); ++hop) {
      const int peer = receiver_at_hop(rank(), hop, world());
      emit(step{.reserve = inbox_room(rank(), peer, 0, epoch + 1)});
    }
  }

 private:
  /// Acquires the chunks of the same share at all sources. The senders of these chunks wait for no
  /// later step of this worker.
  constexpr void await(strided share, std::uint64_t epoch, auto&& emit) const {
    for (int i = 0; i < share.share_of(most_chunks()); ++i) {
      for (int hop = first_hop(); hop < world(); ++hop) {
        const int source = source_at_hop(rank(), hop, world());
        if (share.at(i) < chunks_of(source))
          emit(step{.acquire = inbox_room(source, rank(), share.at(i), epoch)});
      }
    }
  }

  /// Copies the rank's shard into its outbox, from which peers pull, so that no peer reads the
  /// caller's A after the run.
  UNTAX_CALLS_ANY_SIDE
  template <class Emit>
  UNTAX_HOST_DEVICE constexpr void offer(strided share, std::uint64_t epoch, Emit&& emit) const {
    for (int i = 0; i < share.share_of(chunks_of(rank())); ++i) {
      const chunk p = chunk_at(rank(), share.at(i));
      for (int hop = 1; hop < world(); ++hop) emit(step{.reserve = offer_at_hop(hop, p, epoch)});
      emit(step{.what = action::copy,
                .rows = p.rows.size,
                .cols = p.cols.size,
                .from = in_own_shard(p),
                .to = in_outbox(p, epoch)});
      for (int hop = 1; hop < world(); ++hop) emit(step{.publish = offer_at_hop(hop, p, epoch)});
    }
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr room offer_at_hop(int hop, const chunk& p,
                                                              std::uint64_t epoch) const noexcept {
    return offer_room(rank(), receiver_at_hop(rank(), hop, world()), p.index, epoch);
  }

  /// Pulls the chunks that the other ranks offer. If A is collected, copies the rank's own shard,
  /// too.
  UNTAX_CALLS_ANY_SIDE
  template <class Emit>
  UNTAX_HOST_DEVICE constexpr void pull(strided share, std::uint64_t epoch, Emit&& emit) const {
    for (int hop = first_hop(); hop < world(); ++hop) {
      const int source = source_at_hop(rank(), hop, world());
      for (int i = 0; i < share.share_of(chunks_of(source)); ++i) {
        const chunk p = chunk_at(source, share.at(i));
        const room r = inbox_room(source, rank(), p.index, epoch);
        emit(step{.what = action::copy,
                  .rows = p.rows.size,
                  .cols = p.cols.size,
                  .from = hop == 0 ? in_own_shard(p) : in_outbox(p, epoch),
                  .to = in_inbox(rank(), p, epoch),
                  .reserve = r,
                  .acquire = hop == 0 ? room{} : offer_room(source, rank(), p.index, epoch),
                  .publish = r});
      }
      if (hop == 0 || chunks_of(source) == 0) continue;
      emit(step{.retire = offer_room(source, rank(), 0, epoch), .reader = share.worker});
    }
  }

  constexpr void compute(int worker, std::uint64_t epoch, auto&& emit) const {
    if (library()) {
      multiply_whole({worker, plan_.workers}, epoch, emit);
    } else if (together()) {
      multiply_together({worker, plan_.workers}, epoch, emit);
    } else if (by_rows()) {
      multiply_rows({worker, plan_.workers}, epoch, emit);
    } else {
      multiply_panels({worker, plan_.workers}, epoch, emit);
    }
    finish(worker, epoch, emit);
  }

  /// One GEMM over the gathered A. With several workers, each has blocks of columns.
  constexpr void multiply_whole(strided share, std::uint64_t epoch, auto&& emit) const {
    const pieces blocks{{0, problem_.n}, ceil_div<std::int64_t>(problem_.n, plan_.workers)};
    const place all{operand::inbox, rank(), sets_.set_of(epoch) * set_rows(), 0};
    share.each(blocks.count(), [&](int block) { multiply_all(all, blocks.at(block), emit); });
  }

  /// gather = rows, few rows: copies all chunks into the worker's panel, then multiplies one block
  /// of columns after the other.
  constexpr void multiply_together(strided share, std::uint64_t epoch, auto&& emit) const {
    const pieces cols{{0, problem_.n}, plan_.tile_n};
    if (share.share_of(cols.count()) == 0) return;
    for (int hop = 0; hop < world(); ++hop) {
      const int source = source_at_hop(rank(), hop, world());
      for (int index = 0; index < chunks_of(source); ++index) {
        const chunk p = chunk_at(source, index);
        emit(step{.what = action::copy,
                  .rows = p.rows.size,
                  .cols = p.cols.size,
                  .from = place_of(p, epoch),
                  .to = {operand::panel, rank(), p.rows.begin, p.cols.begin},
                  .acquire = arrival_of(p, epoch)});
      }
    }
    const place all{operand::panel, rank(), 0, 0};
    share.each(cols.count(), [&](int col) { multiply_all(all, cols.at(col), emit); });
  }

  /// Multiplies all of A, which lies in one place, for some columns of C.
  constexpr void multiply_all(place a, range cols, auto&& emit) const {
    emit(step{.what = action::multiply,
              .first = true,
              .last = true,
              .rows = problem_.m,
              .cols = cols.size,
              .depth = problem_.k,
              .from = a,
              .weights = {operand::b, rank(), cols.begin, 0},
              .to = {operand::c, rank(), 0, cols.begin}});
  }

  /// gather = rows: a tile needs one row of chunks. Own rows first, then in the order of arrival.
  constexpr void multiply_rows(strided share, std::uint64_t epoch, auto&& emit) const {
    const pieces cols{{0, problem_.n}, plan_.tile_n};
    for (int hop = 0; hop < world(); ++hop) {
      const int source = source_at_hop(rank(), hop, world());
      const tile_grid grid{row_chunks(source), cols};
      share.each(grid.count(), [&](int tile) {
        std::int64_t done = 0;
        multiply_chunks(source, tile % grid.rows.count(), grid.rows_of(tile), grid.cols_of(tile),
                        done, epoch, emit);
      });
    }
  }

  /// gather = k: every tile needs chunks of all sources, one k-panel after the other, the rank's
  /// own first.
  constexpr void multiply_panels(strided share, std::uint64_t epoch, auto&& emit) const {
    const tile_grid grid{{{0, problem_.m}, plan_.tile_m}, {{0, problem_.n}, plan_.tile_n}};
    share.each(grid.count(), [&](int tile) {
      const range rows = grid.rows_of(tile);
      std::int64_t done = 0;
      for (int hop = 0; hop < world(); ++hop) {
        const int source = source_at_hop(rank(), hop, world());
        const auto row_chunk = static_cast<int>(rows.begin / row_chunks(source).step);
        multiply_chunks(source, row_chunk, rows, grid.cols_of(tile), done, epoch, emit);
      }
    });
  }

  /// Multiplies a tile by one row of a source's chunks. `done`: the part of k that is already in
  /// the tile.
  constexpr void multiply_chunks(int source, int row_chunk, range rows, range cols,
                                 std::int64_t& done, std::uint64_t epoch, auto&& emit) const {
    const int in_row = col_chunks(source).count();
    for (int i = 0; i < in_row; ++i) {
      const chunk p = chunk_at(source, row_chunk * in_row + i);
      const bool first = done == 0;
      done += p.cols.size;
      multiply(p, rows, cols, first, done == problem_.k, epoch, emit);
    }
  }

  constexpr void multiply(const chunk& p, range rows, range cols, bool first, bool last,
                          std::uint64_t epoch, auto&& emit) const {
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

#pragma once

#include <cstdint>

#include "ops/gemm_reduce_common/steps.hpp"

namespace untax {

/// Every rank computes a partial C from its shard of k. The owner of each row block adds all
/// partials in rank order. It keeps the sum, or passes it on to all ranks; or every rank owns all
/// rows.
///
/// Rooms: (source rank, tile) in the inbox of the owner. Tiles of the next rank are computed first,
/// own tiles last.
class gemm_reduce_protocol : public gemm_reduce_steps {
 public:
  using gemm_reduce_steps::gemm_reduce_steps;

  [[nodiscard]] constexpr int kernels() const noexcept {
    if (is_bulk(plan_.how)) return passes_on() ? 6 : 4;
    return plan_.how == pattern::producer_consumer ? 2 : 1;
  }
  [[nodiscard]] constexpr kernel kernel_at(int i) const noexcept {
    constexpr const char* bulk_names[] = {"gemm",   "exchange", "barrier",
                                          "reduce", "scatter",  "barrier"};
    switch (plan_.how) {
      case pattern::bulk_library:
      case pattern::bulk_synchronous: {
        const bool moves = i == 1 || i == 4;
        const bool computes = i == 0 || i == 3;
        return {bulk_names[i], i, computes ? plan_.workers : moves ? plan_.senders : 1};
      }
      case pattern::producer_consumer:
        return i == 0 ? kernel{"gemm", 0, plan_.workers} : kernel{"exchange", 0, plan_.senders};
      case pattern::fused_sequential:
        return {name(), 0, plan_.workers};
      default:
        return {name(), 0, plan_.workers + plan_.senders};
    }
  }

  template <class Emit>
  constexpr void program(int kernel_index, int worker, std::uint64_t epoch, Emit&& emit) const {
    switch (plan_.how) {
      case pattern::bulk_library:
      case pattern::bulk_synchronous:
        if (kernel_index == 0) compute_all(worker, emit);
        if (kernel_index == 1) exchange({worker, plan_.senders}, epoch, emit);
        if (kernel_index == 2) barrier_.program(epoch, emit);
        if (kernel_index == 3) reduce_all(worker, epoch, emit);
        if (kernel_index == 4) pass_all_on(worker, epoch, emit);
        if (kernel_index == 5) closing_.program(epoch, emit);
        return;
      case pattern::producer_consumer:
        if (kernel_index == 0) {
          compute(worker, epoch, emit);
        } else {
          exchange({worker, plan_.senders}, epoch, emit);
          if (passes_on()) pass_all_on(worker, epoch, emit);
        }
        return;
      case pattern::fused_sequential:
        compute(worker, epoch, emit);
        if (passes_on()) close(worker, epoch, emit);
        return;
      default:
        if (worker < plan_.workers) {
          compute(worker, epoch, emit);
        } else {
          send_from_ring(worker - plan_.workers, epoch, emit);
          if (passes_on()) pass_all_on(worker - plan_.workers, epoch, emit);
        }
    }
  }

 private:
  [[nodiscard]] constexpr const char* name() const noexcept {
    return target_ == reduce_target::owner ? "gemm_reduce_scatter" : "gemm_all_reduce";
  }

  /// Computes the whole partial result into memory: as one library GEMM (with several workers, each
  /// has a block of columns), or tile by tile.
  template <class Emit>
  constexpr void compute_all(int worker, Emit&& emit) const {
    const strided share{worker, plan_.workers};
    const auto each_of = [&](const tile_grid& grid) {
      share.each(grid.count(), [&](int tile) {
        const range rows = grid.rows_of(tile);
        const range cols = grid.cols_of(tile);
        multiply(rows, cols, {operand::outbox, rank(), rows.begin, cols.begin}, {}, {}, emit);
      });
    };
    if (plan_.how == pattern::bulk_library) {
      const auto width = ceil_div<std::int64_t>(result_.cols, plan_.workers);
      return each_of({{{0, result_.rows}, result_.rows}, {{0, result_.cols}, width}});
    }
    if (shares_products()) return each_of(products());
    for (int hop = 1; hop <= world(); ++hop)
      each_of(tiles_of(receiver_at_hop(rank(), hop, world())));
  }

  template <class Emit>
  constexpr void compute(int worker, std::uint64_t epoch, Emit&& emit) const {
    if (shares_products()) {
      compute_shared(worker, epoch, emit);
    } else {
      compute_for_others(worker, epoch, emit);
      compute_and_reduce(worker, epoch, emit);
    }
    if (!reserves() || adds_nothing(rank())) return;
    for (int hop = 1; hop < world(); ++hop) {
      emit(step{.retire = slot(source_at_hop(rank(), hop, world()), rank(), 0, epoch),
                .reader = worker});
    }
  }

  /// One product at a time: the rows of other owners are sent, and own rows are reduced.
  template <class Emit>
  constexpr void compute_shared(int worker, std::uint64_t epoch, Emit&& emit) const {
    int sent = 0;
    strided{worker, plan_.workers}.each(products().count(), [&](int tile) {
      const range rows = products().rows_of(tile);
      const range cols = products().cols_of(tile);
      const auto in_product = [&](int owner) {
        return place{operand::product, rank(), rows_of(owner, tile).begin - rows.begin, 0};
      };
      multiply(rows, cols, {operand::product, rank(), 0, 0}, {}, {}, emit);
      each_receiver([&](int owner) {
        const destination d = destination_of(owner, tile, worker, sent++, epoch);
        emit(step{.what = action::store,
                  .rows = rows_of(owner, tile).size,
                  .cols = cols.size,
                  .from = in_product(owner),
                  .to = d.to,
                  .reserve = d.reserve,
                  .publish = d.publish});
      });
      if (!adds_nothing(rank())) finish(tile, in_product(rank()), epoch, emit);
    });
  }

  /// Computes tiles that others own, the next rank's first.
  template <class Emit>
  constexpr void compute_for_others(int worker, std::uint64_t epoch, Emit&& emit) const {
    int sent = 0;
    for (int hop = 1; hop < world(); ++hop) {
      const int owner = receiver_at_hop(rank(), hop, world());
      strided{worker, plan_.workers}.each(tiles_of(owner).count(), [&](int tile) {
        const destination d = destination_of(owner, tile, worker, sent++, epoch);
        multiply(rows_of(owner, tile), cols_of(owner, tile), d.to, d.reserve, d.publish, emit);
      });
    }
  }

  /// Computes own tiles. The product stays with the worker, and is added in its place in rank
  /// order.
  template <class Emit>
  constexpr void compute_and_reduce(int worker, std::uint64_t epoch, Emit&& emit) const {
    constexpr auto product = operand::product;
    strided{worker, plan_.workers}.each(tiles_of(rank()).count(), [&](int tile) {
      multiply(rows_of(rank(), tile), cols_of(rank(), tile), {product, rank(), 0, 0}, {}, {}, emit);
      finish(tile, {product, rank(), 0, 0}, epoch, emit);
    });
  }

  /// Adds an own tile and, without senders, passes the sum on.
  template <class Emit>
  constexpr void finish(int tile, place own, std::uint64_t epoch, Emit&& emit) const {
    reduce(tile, own, epoch, emit);
    if (passes_on() && !has_senders()) pass_on(tile, emit);
  }

  template <class Emit>
  constexpr void reduce_all(int worker, std::uint64_t epoch, Emit&& emit) const {
    strided{worker, plan_.workers}.each(tiles_of(rank()).count(), [&](int tile) {
      reduce(tile, in_outbox(rank(), tile), epoch, emit);
    });
  }

  /// Sends partial tiles from the outbox to their owners, in the order in which they are computed:
  /// a worker that waits for the tiles of its peers must not keep its own from them.
  template <class Emit>
  constexpr void exchange(strided share, std::uint64_t epoch, Emit&& emit) const {
    const auto send_tile = [&](int owner, int tile) {
      send(owner, tile, in_outbox(owner, tile), tile_flag(owner, tile, epoch), {}, epoch, emit);
    };
    if (shares_products()) {
      share.each(products().count(),
                 [&](int tile) { each_receiver([&](int owner) { send_tile(owner, tile); }); });
      return;
    }
    for (int hop = 1; hop < world(); ++hop) {
      const int owner = receiver_at_hop(rank(), hop, world());
      share.each(tiles_of(owner).count(), [&](int tile) { send_tile(owner, tile); });
    }
  }

  template <class Emit>
  constexpr void send_from_ring(int sender, std::uint64_t epoch, Emit&& emit) const {
    ring_.each(
        sender, [&](int worker) { return sent_by(worker); },
        [&](int worker, int index) {
          const auto [owner, tile] = sent_at(worker, index);
          const room r = ring_.at(worker, index, sent_by(worker), epoch);
          const room left = ring_is_asked() ? r : room{};
          send(owner, tile, ring_.place_of(worker, index), r, left, epoch, emit);
        });
  }

  /// Passes on the sums of a sender's share. They come last: the tiles that peers need for their
  /// sums are sent before.
  template <class Emit>
  constexpr void pass_all_on(int sender, std::uint64_t epoch, Emit&& emit) const {
    strided{sender, plan_.senders}.each(tiles_of(rank()).count(), [&](int tile) {
      if (has_rooms()) emit(step{.acquire = tile_flag(rank(), tile, epoch)});
      pass_on(tile, emit);
    });
    if (has_rooms()) close(sender, epoch, emit);
  }
};

static_assert(protocol<gemm_reduce_protocol>);

}  // namespace untax

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
  int owner_step = 1;  ///< owners have multiples of this many rows
};

/// Every rank computes a partial C from its shard of k. The owner of each row block adds all
/// partials in rank order. It keeps the sum, or passes it on to all ranks; or every rank owns all
/// rows.
///
/// Rooms: (source rank, tile) in the inbox of the owner. Tiles of the next rank are computed first,
/// a rank's own tiles last. Ranks signal as in `owner_exchange`: a tile at a time or, in rows, all
/// tiles of a worker at once.
class gemm_reduce_protocol : public summing_layout {
 public:
  constexpr gemm_reduce_protocol(const summed_gemm& problem, const protocol_plan& plan)
      : summing_layout({problem.m, problem.n}, problem.target, plan,
                       has_senders(plan.how) ? plan.senders : plan.workers, problem.owner_step),
        tile_done_(counters_.take(1, plan.world, in_rows() ? 0 : most_tiles())),
        k_(problem.k),
        ring_{plan.rank,
              plan.workers,
              plan.senders,
              plan.tile_m,
              plan.tile_n,
              counters_.take(1, plan.workers, tile_ring::depth),
              counters_.take(1, plan.workers, tile_ring::depth)} {}

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
      case pattern::fused_warp_specialized:
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
      case pattern::fused_warp_specialized:
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

  [[nodiscard]] constexpr extent outbox() const noexcept {
    if (has_ring()) return {ring_.rows(), ring_.cols()};
    return has_senders(plan_.how) ? result_ : extent{};
  }
  [[nodiscard]] constexpr extent tile_extent() const noexcept {
    return plan_.how == pattern::bulk_library ? result_ : extent{plan_.tile_m, plan_.tile_n};
  }
  [[nodiscard]] constexpr bool has_ring() const noexcept {
    return plan_.how == pattern::fused_specialized;
  }

  /// Whether one multiplication computes the tiles of one number for all owners: the owners want
  /// the same rows, or so few that a GEMM for one owner alone would read all weights for little
  /// work.
  [[nodiscard]] constexpr bool shares_products() const noexcept {
    return !in_rows() && (straight() || (world() > 1 && rows_.full() <= few_rows &&
                                         result_.rows <= plan_.tile_m));
  }
  /// The tiles that are multiplied at once, if products are shared.
  [[nodiscard]] constexpr tile_grid products() const noexcept {
    return {{{0, result_.rows}, straight() ? plan_.tile_m : result_.rows},
            {{0, result_.cols}, plan_.tile_n}};
  }

  /// The place of a tile in this rank's partial result, if the whole partial result is kept.
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
    each_peer([&](int owner) { count += share_of(worker, owner); });
    return count;
  }

  /// A tile, and the rank that adds it; this rank, if all ranks add.
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

  [[nodiscard]] static constexpr bool has_senders(pattern how) noexcept {
    return how != pattern::fused_sequential && how != pattern::fused_warp_specialized;
  }

  // The steps of one tile: multiply, hand over, send, add in rank order, pass on.

  template <class Emit>
  constexpr void multiply(range rows, range cols, place to, room before, room after,
                          Emit&& emit) const {
    emit(step{.what = action::multiply,
              .first = true,
              .last = true,
              .rows = rows.size,
              .cols = cols.size,
              .depth = sharding{k_, world(), shard_granularity}.of(rank()).size,
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
    if (has_senders(plan_.how)) return {in_outbox(owner, tile), {}, tile_flag(owner, tile, epoch)};
    const room r = slab(rank(), owner, epoch, tile);
    return {in_inbox(rank(), owner, tile, epoch), r, in_rows() ? room{} : r};
  }

  /// Whether a worker reserves a place in its ring. In one phase that is not needed: the worker has
  /// added the tile that was in the place. Peers computed their part of that tile after they had
  /// received the tile before it, which has therefore left the ring.
  [[nodiscard]] constexpr bool ring_is_asked() const noexcept { return !straight(); }

  /// Calls `visit` for the ranks to which a worker hands over a shared product, nearest first. If a
  /// sender takes one tile for all peers, calls it once, with this rank in place of all peers.
  template <class Visit>
  constexpr void each_receiver(Visit&& visit) const {
    if (straight() && has_senders(plan_.how)) {
      if (world() > 1) visit(rank());
      return;
    }
    each_peer([&](int owner) {
      if (!adds_nothing(owner)) visit(owner);
    });
  }

  /// Sends a partial tile to its owner; or to every peer, if this rank stands for all. `before`:
  /// the tile is ready; `after`: it is not needed any more.
  template <class Emit>
  constexpr void send(int owner, int tile, place from, room before, room after, std::uint64_t epoch,
                      Emit&& emit) const {
    if (owner != rank()) return copy(owner, tile, from, before, after, epoch, emit);
    if (before.named()) emit(step{.acquire = before});
    each_peer([&](int peer) { copy(peer, tile, from, {}, {}, epoch, emit); });
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
              .publish =
                  passes_on() && has_senders(plan_.how) ? tile_flag(rank(), tile, epoch) : room{}});
  }

  /// Copies the sum of an own tile to the results of all peers. The copy needs no permission: the
  /// partial tile of a peer, sent in this epoch, shows that its result is open.
  template <class Emit>
  constexpr void pass_on(int tile, Emit&& emit) const {
    each_peer([&](int peer) {
      emit(step{.what = action::copy,
                .rows = rows_of(rank(), tile).size,
                .cols = cols_of(rank(), tile).size,
                .from = in_result(rank(), tile),
                .to = in_result(peer, tile)});
    });
  }

  template <class Emit>
  constexpr void copy(int owner, int tile, place from, room before, room after, std::uint64_t epoch,
                      Emit&& emit) const {
    const room filled = slab(rank(), owner, epoch, tile);
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

  // The programs of workers and senders.

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
    if (in_rows() && worker == 0) retire_slabs(epoch, 0, emit);
    if (shares_products()) {
      compute_shared(worker, epoch, emit);
    } else {
      compute_for_others(worker, epoch, emit);
      if (in_rows()) close_slabs(epoch, worker, emit);
      compute_and_reduce(worker, epoch, emit);
    }
    if (reserves() && !in_rows()) retire_slabs(epoch, worker, emit);
  }

  /// One product at a time: the rows of other owners are sent, and the rank's own rows are reduced.
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

  /// Computes tiles of other owners, the next rank's first.
  template <class Emit>
  constexpr void compute_for_others(int worker, std::uint64_t epoch, Emit&& emit) const {
    int sent = 0;
    each_peer([&](int owner) {
      strided{worker, plan_.workers}.each(tiles_of(owner).count(), [&](int tile) {
        const destination d = destination_of(owner, tile, worker, sent++, epoch);
        multiply(rows_of(owner, tile), cols_of(owner, tile), d.to, d.reserve, d.publish, emit);
      });
    });
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
    if (passes_on() && !has_senders(plan_.how)) pass_on(tile, emit);
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
    each_peer([&](int owner) {
      share.each(tiles_of(owner).count(), [&](int tile) { send_tile(owner, tile); });
    });
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

  counter_block tile_done_;
  std::int64_t k_;
  tile_ring ring_;
};

static_assert(protocol<gemm_reduce_protocol>);

}  // namespace untax

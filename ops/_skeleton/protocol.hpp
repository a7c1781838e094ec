#pragma once

#include <cstdint>

#include <untax/ops/problems.hpp>
#include <untax/tile/barrier_steps.hpp>
#include <untax/tile/counter_layout.hpp>
#include <untax/tile/order.hpp>
#include <untax/tile/protocol.hpp>
#include <untax/tile/shard.hpp>
#include "ops/_skeleton/skeleton.hpp"

namespace untax {

/// Each rank multiplies its own rows of A. Each finished tile of C goes to every other rank.
///
/// Rooms: (source rank, tile) in the inbox of each consumer, in two sets by epoch parity.
///
/// A new operator describes itself in such a class: its memory (counters, inbox, outbox), its
/// kernels, and for each worker the list of its steps. The class holds no state and touches no
/// data, so that the host engine, the model engine and the schedule checker can all run it.
class skeleton_protocol {
 public:
  // 1. Counters. One worker raises each of them, to absolute values, so that a signal which comes
  //    twice or late does no harm. All ranks number them in the same order.
  constexpr skeleton_protocol(const skeleton_problem& problem, const protocol_plan& plan)
      : problem_(problem), plan_(plan), shards_{problem.m, plan.world} {
    const int tiles_of_full_shard = tiles_of({0, shards_.full()}).count();
    counter_layout layout;
    ready_ = layout.take(sets_.sets, plan.world, tiles_of_full_shard);
    free_ = layout.take(sets_.sets, plan.world, plan.workers);
    computed_ = layout.take(1, 1, tiles_of_full_shard);
    barrier_ = {plan.rank, plan.world, layout.take(1, plan.world, 1)};
    counters_ = layout.size();
  }

  // 2. Memory: matrices that the operator owns at every rank, with all room sets.
  [[nodiscard]] constexpr int rank() const noexcept { return plan_.rank; }
  [[nodiscard]] constexpr int world() const noexcept { return plan_.world; }
  [[nodiscard]] constexpr int counters() const noexcept { return counters_; }
  [[nodiscard]] constexpr extent inbox() const noexcept {
    return {sets_.sets * problem_.m, problem_.n};
  }
  [[nodiscard]] constexpr extent outbox() const noexcept { return {}; }
  [[nodiscard]] constexpr extent tile_extent() const noexcept {
    return {tiles_of({0, shards_.full()}).rows.step, tiles_of({0, shards_.full()}).cols.step};
  }

  // 3. Kernels: stages run one after the other, the kernels of one stage at the same time.
  [[nodiscard]] constexpr int kernels() const noexcept {
    return is_bulk(plan_.how) ? 4 : plan_.how == pattern::producer_consumer ? 2 : 1;
  }
  [[nodiscard]] constexpr kernel kernel_at(int i) const noexcept {
    switch (plan_.how) {
      case pattern::bulk_library:
      case pattern::bulk_synchronous:
        return i == 0   ? kernel{"gemm", 0, plan_.workers}
               : i == 1 ? kernel{"send", 1, plan_.senders}
               : i == 2 ? kernel{"barrier", 2, 1}
                        : kernel{"collect", 3, plan_.workers};
      case pattern::producer_consumer:
        return i == 0 ? kernel{"gemm", 0, plan_.workers} : kernel{"send", 0, plan_.senders};
      case pattern::fused_sequential:
        return {"skeleton", 0, plan_.workers};
      default:
        return {"skeleton", 0, plan_.workers + plan_.senders};
    }
  }

  // 4. Programs: the steps of each worker, the same for every epoch but for rooms and their uses.
  template <class Emit>
  constexpr void program(int kernel_index, int worker, std::uint64_t epoch, Emit&& emit) const {
    switch (plan_.how) {
      case pattern::bulk_library:
      case pattern::bulk_synchronous:
        if (kernel_index == 0) compute({worker, plan_.workers}, epoch, emit);
        if (kernel_index == 1) send({worker, plan_.senders}, epoch, emit);
        if (kernel_index == 2) barrier_.program(epoch, emit);
        if (kernel_index == 3) collect(worker, epoch, emit);
        return;
      case pattern::producer_consumer:
        if (kernel_index == 0) compute_and_collect(worker, epoch, emit);
        if (kernel_index == 1) send({worker, plan_.senders}, epoch, emit);
        return;
      case pattern::fused_sequential:
        compute_and_send({worker, plan_.workers}, epoch, emit);
        collect(worker, epoch, emit);
        return;
      default:
        if (worker < plan_.workers) {
          compute_and_collect(worker, epoch, emit);
        } else {
          send({worker - plan_.workers, plan_.senders}, epoch, emit);
        }
    }
  }

 private:
  [[nodiscard]] constexpr bool has_senders_beside() const noexcept {
    return plan_.how == pattern::producer_consumer || plan_.how == pattern::fused_specialized;
  }
  /// The tiles of some rows. A library GEMM takes all rows at once; with several workers, each has
  /// one block of columns.
  [[nodiscard]] constexpr tile_grid tiles_of(range rows) const noexcept {
    if (plan_.how == pattern::bulk_library) {
      const auto block = ceil_div<std::int64_t>(problem_.n, plan_.workers);
      return {{rows, shards_.full()}, {{0, problem_.n}, block}};
    }
    return {{rows, plan_.tile_m}, {{0, problem_.n}, plan_.tile_n}};
  }
  [[nodiscard]] constexpr tile_grid tiles_of(int source) const noexcept {
    return tiles_of(shards_.of(source));
  }

  // The place of a tile of `source`.

  [[nodiscard]] constexpr place in_result(int source, int tile) const noexcept {
    const tile_grid tiles = tiles_of(source);
    return {operand::c, rank(), tiles.rows_of(tile).begin, tiles.cols_of(tile).begin};
  }
  [[nodiscard]] constexpr place in_inbox(int source, int consumer, int tile,
                                         std::uint64_t epoch) const noexcept {
    const std::int64_t set = sets_.set_of(epoch) * problem_.m;
    const tile_grid tiles = tiles_of(source);
    return {operand::inbox, consumer, set + tiles.rows_of(tile).begin, tiles.cols_of(tile).begin};
  }

  // The rooms, and the counters that guard them.

  /// The room of a tile of `source` in the inbox of `consumer`. Its `ready` counter lies at the
  /// consumer. Its `free` counters lie at the source, one for each worker that reads, and serve all
  /// tiles of the set at once: a worker retires when it has read its last one. Bulk patterns have
  /// no rooms: the barrier orders everything.
  [[nodiscard]] constexpr room landing(int source, int consumer, int tile,
                                       std::uint64_t epoch) const noexcept {
    if (is_bulk(plan_.how)) return {};
    const int set = sets_.set_of(epoch);
    const int ready = ready_.at(set, source, tile);
    return {.producer = source,
            .consumer = consumer,
            .number = ready,
            .ready = ready,
            .free = free_.at(set, consumer),
            .readers = plan_.workers,
            .use = sets_.use_of(epoch)};
  }
  /// Signals to the senders of this rank that a tile is in c. It is a flag: nothing waits until it
  /// is free, since the end of the run orders the next use.
  [[nodiscard]] constexpr room computed(int tile, std::uint64_t epoch) const noexcept {
    if (!has_senders_beside()) return {};
    const int ready = computed_.at(0, 0, tile);
    return {.producer = rank(), .consumer = rank(), .number = ready, .ready = ready, .use = epoch};
  }

  // The programs of the workers. A step is at most one verb of each kind around one action.

  template <class Emit>
  constexpr void multiply(int tile, std::uint64_t epoch, Emit&& emit) const {
    const range rows = tiles_of(rank()).rows_of(tile);
    const range cols = tiles_of(rank()).cols_of(tile);
    emit(step{.what = action::multiply,
              .first = true,
              .last = true,
              .rows = rows.size,
              .cols = cols.size,
              .depth = problem_.k,
              .from = {operand::a, rank(), rows.begin - shards_.of(rank()).begin, 0},
              .weights = {operand::b, rank(), cols.begin, 0},
              .to = in_result(rank(), tile),
              .publish = computed(tile, epoch)});
  }

  /// Sends to all peers, nearest first, so that at every hop each link carries one stream.
  template <class Emit>
  constexpr void send_tile(int tile, std::uint64_t epoch, Emit&& emit) const {
    const tile_grid tiles = tiles_of(rank());
    for (int hop = 1; hop < world(); ++hop) {
      const int peer = receiver_at_hop(rank(), hop, world());
      const room r = landing(rank(), peer, tile, epoch);
      emit(step{.what = action::copy,
                .rows = tiles.rows_of(tile).size,
                .cols = tiles.cols_of(tile).size,
                .from = in_result(rank(), tile),
                .to = in_inbox(rank(), peer, tile, epoch),
                .reserve = r,
                .publish = r});
    }
  }

  template <class Emit>
  constexpr void compute(strided share, std::uint64_t epoch, Emit&& emit) const {
    share.each(tiles_of(rank()).count(), [&](int tile) { multiply(tile, epoch, emit); });
  }

  template <class Emit>
  constexpr void send(strided share, std::uint64_t epoch, Emit&& emit) const {
    share.each(tiles_of(rank()).count(), [&](int tile) {
      if (has_senders_beside()) emit(step{.acquire = computed(tile, epoch)});
      send_tile(tile, epoch, emit);
    });
  }

  template <class Emit>
  constexpr void compute_and_send(strided share, std::uint64_t epoch, Emit&& emit) const {
    share.each(tiles_of(rank()).count(), [&](int tile) {
      multiply(tile, epoch, emit);
      send_tile(tile, epoch, emit);
    });
  }

  template <class Emit>
  constexpr void compute_and_collect(int worker, std::uint64_t epoch, Emit&& emit) const {
    compute({worker, plan_.workers}, epoch, emit);
    collect(worker, epoch, emit);
  }

  /// Copies tiles of the others out of the inbox, in the order of arrival. A worker retires the
  /// rooms of each source once, even if it read nothing in them: the source waits for all readers.
  template <class Emit>
  constexpr void collect(int worker, std::uint64_t epoch, Emit&& emit) const {
    for (int hop = 1; hop < world(); ++hop) {
      const int source = source_at_hop(rank(), hop, world());
      const tile_grid tiles = tiles_of(source);
      if (tiles.count() == 0) continue;
      strided{worker, plan_.workers}.each(tiles.count(), [&](int tile) {
        emit(step{.what = action::copy,
                  .rows = tiles.rows_of(tile).size,
                  .cols = tiles.cols_of(tile).size,
                  .from = in_inbox(source, rank(), tile, epoch),
                  .to = in_result(source, tile),
                  .acquire = landing(source, rank(), tile, epoch)});
      });
      emit(step{.retire = landing(source, rank(), 0, epoch), .reader = worker});
    }
  }

  skeleton_problem problem_;
  protocol_plan plan_;
  sharding shards_;
  room_sets sets_{2};
  counter_block ready_;
  counter_block free_;
  counter_block computed_;
  barrier_steps barrier_;
  int counters_ = 0;
};

static_assert(protocol<skeleton_protocol>);

}  // namespace untax

#pragma once

#include <cstdint>

#include <untax/ops/problems.hpp>
#include <untax/tile/barrier_steps.hpp>
#include <untax/tile/counter_layout.hpp>
#include <untax/tile/order.hpp>
#include <untax/tile/protocol.hpp>
#include <untax/tile/shard.hpp>
#include <untax/tile/tile_ring.hpp>

namespace untax {

/// C = A x B^T at every rank, where rank r computes the columns of C that belong to its shard of B.
///
/// The room is C itself. A rank opens it for each epoch, and (source rank, worker) fills it. Only
/// the caller reads C, so one signal from each worker of each source after its tiles is enough.
class gemm_all_scatter_protocol {
 public:
  constexpr gemm_all_scatter_protocol(const gemm_all_scatter_problem& problem,
                                      const protocol_plan& plan)
      : problem_(problem), plan_(plan), shards_{problem.n, plan.world, shard_granularity} {
    counter_layout layout;
    landed_ = layout.take(1, plan.world, publishers());
    opened_ = layout.take(1, plan.world, 1);
    tile_done_ = layout.take(1, 1, tiles_of({0, shards_.full()}).count());
    ring_ = {plan.rank,
             plan.workers,
             plan.senders,
             plan.tile_m,
             plan.tile_n,
             layout.take(1, plan.workers, tile_ring::depth),
             layout.take(1, plan.workers, tile_ring::depth)};
    opening_ = {plan.rank, plan.world, layout.take(1, plan.world, 1)};
    closing_ = {plan.rank, plan.world, layout.take(1, plan.world, 1)};
    counters_ = layout.size();
  }

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int rank() const noexcept { return plan_.rank; }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int world() const noexcept { return plan_.world; }
  [[nodiscard]] constexpr int counters() const noexcept { return counters_; }
  [[nodiscard]] constexpr extent inbox() const noexcept { return {}; }
  [[nodiscard]] constexpr extent outbox() const noexcept {
    return plan_.how == pattern::fused_specialized ? extent{ring_.rows(), ring_.cols()} : extent{};
  }
  [[nodiscard]] constexpr extent tile_extent() const noexcept {
    return {tiles_of({0, shards_.full()}).rows.step, tiles_of({0, shards_.full()}).cols.step};
  }

  [[nodiscard]] constexpr int kernels() const noexcept {
    const bool two =
        plan_.how == pattern::producer_consumer || plan_.how == pattern::bulk_synchronous;
    const bool four = plan_.how == pattern::bulk_library || plan_.how == pattern::copy_engine;
    return four ? 4 : two ? 2 : 1;
  }
  [[nodiscard]] constexpr kernel kernel_at(int i) const noexcept {
    switch (plan_.how) {
      case pattern::bulk_library:
        return i == 0   ? kernel{"gemm", 0, plan_.workers}
               : i == 2 ? kernel{"scatter", 2, plan_.senders}
                        : kernel{"barrier", i, 1};
      case pattern::bulk_synchronous:
        return i == 0 ? kernel{"gemm", 0, plan_.workers} : kernel{"scatter", 1, plan_.senders};
      case pattern::copy_engine:
        return i == 0   ? kernel{"gemm", 0, plan_.workers}
               : i == 1 ? kernel{"open", 0, 1}
               : i == 2 ? kernel{"scatter", 1, plan_.senders}
                        : kernel{"close", 2, 1};
      case pattern::producer_consumer:
        return i == 0 ? kernel{"gemm", 0, plan_.workers} : kernel{"scatter", 0, plan_.senders};
      case pattern::fused_sequential:
        return {"gemm_all_scatter", 0, plan_.workers};
      default:
        return {"gemm_all_scatter", 0, plan_.workers + plan_.senders};
    }
  }

  constexpr void program(int kernel_index, int worker, std::uint64_t epoch, auto&& emit) const {
    switch (plan_.how) {
      case pattern::bulk_library:
        if (kernel_index == 0) compute({worker, plan_.workers}, epoch, emit);
        if (kernel_index == 1) opening_.program(epoch, emit);
        if (kernel_index == 2) scatter({worker, plan_.senders}, epoch, emit);
        if (kernel_index == 3) closing_.program(epoch, emit);
        return;
      case pattern::copy_engine:
        if (kernel_index == 0) compute({worker, plan_.workers}, epoch, emit);
        if (kernel_index == 1) meet(epoch, emit);
        if (kernel_index == 2) copy_in_turn(worker, epoch, emit);
        if (kernel_index == 3) close(0, epoch, emit);
        return;
      case pattern::bulk_synchronous:
      case pattern::producer_consumer:
        if (kernel_index == 0) {
          compute({worker, plan_.workers}, epoch, emit);
        } else {
          open(worker, epoch, emit);
          scatter({worker, plan_.senders}, epoch, emit);
          close(worker, epoch, emit);
        }
        return;
      case pattern::fused_sequential:
        open(worker, epoch, emit);
        compute_and_scatter({worker, plan_.workers}, epoch, emit);
        close(worker, epoch, emit);
        return;
      default:
        if (worker < plan_.workers) {
          compute_to_ring(worker, epoch, emit);
        } else {
          open(worker - plan_.workers, epoch, emit);
          scatter_from_ring(worker - plan_.workers, epoch, emit);
          close(worker - plan_.workers, epoch, emit);
        }
    }
  }

  /// The number of workers that only send. There are none if workers store to all peers.
  [[nodiscard]] constexpr int senders() const noexcept {
    return plan_.how == pattern::fused_sequential ? 0 : plan_.senders;
  }
  [[nodiscard]] static constexpr room_sets sets() noexcept { return {1}; }
  /// The steps of a sender in a kernel of senders, in a run.
  constexpr void send(int sender, std::uint64_t epoch, auto&& emit) const {
    program(plan_.how == pattern::copy_engine ? 2 : 1, sender, epoch, emit);
  }

  [[nodiscard]] constexpr int publishers() const noexcept {
    if (plan_.how == pattern::copy_engine) return 1;
    return plan_.how == pattern::fused_sequential ? plan_.workers : plan_.senders;
  }
  /// A library GEMM computes all rows at once; with several workers, each has a block of columns.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr tile_grid tiles_of(range cols) const noexcept {
    if (plan_.how == pattern::bulk_library) {
      return {{{0, problem_.m}, problem_.m},
              {cols, ceil_div<std::int64_t>(shards_.full(), plan_.workers)}};
    }
    return {{{0, problem_.m}, plan_.tile_m}, {cols, plan_.tile_n}};
  }
  /// The tiles of this rank's columns.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr tile_grid tiles() const noexcept {
    return tiles_of(shards_.of(rank()));
  }
  /// The tile that begins at a row and one of this rank's columns; -1 beyond the last one.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int tile_at(std::int64_t row,
                                                        std::int64_t column) const noexcept {
    const tile_grid grid = tiles();
    if (row >= problem_.m || column >= grid.cols.whole.size) return -1;
    return static_cast<int>(row / plan_.tile_m + column / plan_.tile_n * grid.rows.count());
  }
  /// The row tiles of a raster group, which is sent column by column before the next one.
  [[nodiscard]] constexpr int raster_rows() const noexcept {
    const int rows = tiles().rows.count();
    return plan_.raster_rows > 1 && plan_.raster_rows < rows ? plan_.raster_rows : rows;
  }
  /// The tile that is sent as number `turn`.
  [[nodiscard]] constexpr int tile_in_turn(int turn) const noexcept {
    const int rows = tiles().rows.count();
    const auto at = raster_grid{rows, tiles().cols.count(), raster_rows()}.at(turn);
    return at.row + at.column * rows;
  }
  [[nodiscard]] constexpr place in_result(int at, int tile) const noexcept {
    return {operand::c, at, tiles().rows_of(tile).begin, tiles().cols_of(tile).begin};
  }

  /// The part of the C of `consumer` that worker `publisher` of rank `source` fills.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr room landing(int source, int consumer, int publisher,
                                                         std::uint64_t epoch) const noexcept {
    const int ready = landed_.at(0, source, publisher);
    return {.producer = source,
            .consumer = consumer,
            .number = ready,
            .ready = ready,
            .free = opened_.at(0, consumer),
            .use = epoch,
            .credit = 0};
  }
  /// Signals that a tile is in this rank's own C. Within a rank the end of the run orders its next
  /// use.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr room tile_flag(int tile,
                                                           std::uint64_t epoch) const noexcept {
    if (plan_.how != pattern::producer_consumer) return {};
    const int ready = tile_done_.at(0, 0, tile);
    return {.producer = rank(), .consumer = rank(), .number = ready, .ready = ready, .use = epoch};
  }

  /// Permits all peers to write into this rank's C, which the caller has handed over.
  constexpr void open(int worker, std::uint64_t epoch, auto&& emit) const {
    if (worker != 0) return;
    for (int hop = 1; hop < world(); ++hop) {
      emit(step{.retire = landing(source_at_hop(rank(), hop, world()), rank(), 0, epoch)});
    }
  }

  /// Signals that this worker's share is complete at all ranks, and waits for its counterparts.
  constexpr void close(int publisher, std::uint64_t epoch, auto&& emit) const {
    for (int hop = 1; hop < world(); ++hop) {
      emit(step{.publish =
                    landing(rank(), receiver_at_hop(rank(), hop, world()), publisher, epoch)});
    }
    for (int hop = 1; hop < world(); ++hop) {
      emit(step{.acquire = landing(source_at_hop(rank(), hop, world()), rank(), publisher, epoch)});
    }
  }

  /// Permits all peers to write into this rank's C, and waits until all peers permit it.
  constexpr void meet(std::uint64_t epoch, auto&& emit) const {
    open(0, epoch, emit);
    for (int hop = 1; hop < world(); ++hop) {
      const int peer = receiver_at_hop(rank(), hop, world());
      emit(step{.reserve = landing(rank(), peer, 0, epoch)});
    }
  }

  /// All copies, tile after tile and hop after hop, are distributed over the senders in turn.
  constexpr void copy_in_turn(int sender, std::uint64_t epoch, auto&& emit) const {
    const int hops = world() - 1;
    for (int turn = 1; turn <= tiles().count() * hops; ++turn) {
      if (turn % plan_.senders != sender) continue;
      const int tile = (turn - 1) / hops;
      const int peer = receiver_at_hop(rank(), (turn - 1) % hops + 1, world());
      send_tile(tile, in_result(rank(), tile), peer, 0, epoch, emit);
    }
  }

  /// Sends this share of the tiles to all peers.
  constexpr void scatter(strided share, std::uint64_t epoch, auto&& emit) const {
    for (int i = 0; i < share.share_of(tiles().count()); ++i) {
      const int tile = tile_in_turn(share.at(i));
      if (plan_.how == pattern::producer_consumer) emit(step{.acquire = tile_flag(tile, epoch)});
      send_to_all(tile, share.worker, epoch, emit);
    }
  }

 private:
  constexpr void send_to_all(int tile, int publisher, std::uint64_t epoch, auto&& emit) const {
    for (int hop = 1; hop < world(); ++hop) {
      send_tile(tile, in_result(rank(), tile), receiver_at_hop(rank(), hop, world()), publisher,
                epoch, emit);
    }
  }
  constexpr void send_tile(int tile, place from, int peer, int publisher, std::uint64_t epoch,
                           auto&& emit) const {
    const bool reserved = plan_.how == pattern::bulk_library || plan_.how == pattern::copy_engine;
    const bool remote = peer != rank() && !reserved;
    emit(step{.what = action::copy,
              .rows = tiles().rows_of(tile).size,
              .cols = tiles().cols_of(tile).size,
              .from = from,
              .to = in_result(peer, tile),
              .reserve = remote ? landing(rank(), peer, publisher, epoch) : room{}});
  }

  constexpr void multiply(int tile, place to, room ring, std::uint64_t epoch, auto&& emit) const {
    const range rows = tiles().rows_of(tile);
    const range cols = tiles().cols_of(tile);
    emit(step{.what = action::multiply,
              .first = true,
              .last = true,
              .rows = rows.size,
              .cols = cols.size,
              .depth = problem_.k,
              .from = {operand::a, rank(), rows.begin, 0},
              .weights = {operand::b, rank(), cols.begin - shards_.of(rank()).begin, 0},
              .to = to,
              .reserve = ring,
              .publish = ring.named() ? ring : tile_flag(tile, epoch)});
  }

  constexpr void compute(strided share, std::uint64_t epoch, auto&& emit) const {
    share.each(tiles().count(),
               [&](int tile) { multiply(tile, in_result(rank(), tile), {}, epoch, emit); });
  }

  constexpr void compute_and_scatter(strided share, std::uint64_t epoch, auto&& emit) const {
    share.each(tiles().count(), [&](int tile) {
      multiply(tile, in_result(rank(), tile), {}, epoch, emit);
      send_to_all(tile, share.worker, epoch, emit);
    });
  }

  [[nodiscard]] constexpr room ring_room(int worker, int index,
                                         std::uint64_t epoch) const noexcept {
    return ring_.at(worker, index, strided{worker, plan_.workers}.share_of(tiles().count()), epoch);
  }

  constexpr void compute_to_ring(int worker, std::uint64_t epoch, auto&& emit) const {
    int index = 0;
    strided{worker, plan_.workers}.each(tiles().count(), [&](int tile) {
      multiply(tile, ring_.place_of(worker, index), ring_room(worker, index, epoch), epoch, emit);
      ++index;
    });
  }

  /// Sends each tile of the ring to all copies of C, this rank's own last.
  constexpr void scatter_from_ring(int sender, std::uint64_t epoch, auto&& emit) const {
    const auto count_of = [&](int worker) {
      return strided{worker, plan_.workers}.share_of(tiles().count());
    };
    ring_.each(sender, count_of, [&](int worker, int index) {
      const int tile = worker + index * plan_.workers;
      const room r = ring_room(worker, index, epoch);
      emit(step{.acquire = r});
      for (int hop = 1; hop <= world(); ++hop) {
        send_tile(tile, ring_.place_of(worker, index), receiver_at_hop(rank(), hop, world()),
                  sender, epoch, emit);
      }
      emit(step{.retire = r});
    });
  }

  gemm_all_scatter_problem problem_;
  protocol_plan plan_;
  sharding shards_;
  counter_block landed_;
  counter_block opened_;
  counter_block tile_done_;
  tile_ring ring_;
  barrier_steps opening_;
  barrier_steps closing_;
  int counters_ = 0;
};

static_assert(protocol<gemm_all_scatter_protocol>);

}  // namespace untax

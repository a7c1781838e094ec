#pragma once

#include <cstdint>

#include <untax/tile/barrier_steps.hpp>
#include <untax/tile/protocol.hpp>

#include "ops/collectives_common/chunk_ring.hpp"

namespace untax {

/// The common part of the protocols of all collectives: rank and world, the kernels of each
/// pattern, and the steps that carry one chunk from rank to rank. A collective has one phase (data
/// goes straight to its destination) or two (ranks pass on what they receive).
class chunked_layout {
 public:
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int rank() const noexcept { return plan_.rank; }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int world() const noexcept { return plan_.world; }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int counters() const noexcept { return counters_; }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr extent inbox() const noexcept {
    return {phases_ * chunk_ring::rows_for(plan_), plan_.chunk};
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr extent outbox() const noexcept { return {}; }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr extent tile_extent() const noexcept { return {}; }

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int kernels() const noexcept {
    return is_bulk(plan_.how) ? 1 + 2 * phases_ : 1;
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr kernel kernel_at(int i) const noexcept {
    if (plan_.how == pattern::fused_sequential) return {"collective", 0, plan_.workers};
    if (plan_.how == pattern::fused_specialized)
      return {"collective", 0, phases_ * plan_.workers + takers()};
    if (i % 2 == 1) return {"barrier", i, 1};
    return {i == 0 ? "send" : i == 2 ? "receive" : "collect", i, plan_.workers};
  }

 protected:
  /// The parts of a worker, of three: to send its rank's data; to receive it and, with two phases,
  /// pass it on; to collect the data that were passed on.
  struct role {
    int lane = 0;
    int end = 1;  ///< the lane after the last one
    bool sends = false;
    bool receives = false;
    bool collects = false;
  };

  /// `usual`: the size of most ranges that are split into chunks.
  UNTAX_HOST_DEVICE constexpr chunked_layout(const collective_plan& plan, int phases,
                                             std::int64_t usual) noexcept
      : plan_(plan),
        phases_(phases),
        usual_(usual, plan.chunk, plan.workers),
        ring_(plan, layout_, 0),
        second_ring_(phases == 2 ? chunk_ring(plan, layout_, chunk_ring::rows_for(plan)) : ring_),
        barrier_{plan.rank, plan.world, layout_.take(1, plan.world, 1)},
        second_barrier_{plan.rank, plan.world, layout_.take(1, plan.world, 1)},
        roll_(plan.most > 0 ? layout_.take(1, plan.world, 1) : counter_block{}),
        counters_(layout_.size()) {}

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr role role_of(int kernel_index,
                                                         int worker) const noexcept {
    if (plan_.how == pattern::fused_sequential) return {worker, worker + 1, true, true, true};
    if (plan_.how == pattern::fused_specialized) {
      const int part = worker / plan_.workers;
      if (part >= phases_) {
        const int lane = (worker - phases_ * plan_.workers) * plan_.serves;
        const int end = lane + plan_.serves;
        const bool collects = phases_ == 2;
        return {lane, end < plan_.workers ? end : plan_.workers, false, !collects, collects};
      }
      const int lane = worker - part * plan_.workers;
      return {lane, lane + 1, part == 0, part == 1, false};
    }
    return {worker, worker + 1, kernel_index == 0, kernel_index == 2, kernel_index == 4};
  }
  /// The number of chunks by which receiving lags behind sending, and collecting behind receiving,
  /// if one worker does both: with chunks in flight it need not wait for each. This is less than
  /// the depth, since a worker that waits for a room has to have emptied those of earlier chunks.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int lag_of(bool both) const noexcept {
    return both ? plan_.depth / 2 : 0;
  }

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr lane_chunks chunks_of(range whole,
                                                                  int lane) const noexcept {
    const chunk_deal deal =
        whole.size == usual_.size ? usual_ : chunk_deal(whole.size, plan_.chunk, plan_.workers);
    return {{whole, plan_.chunk}, {lane, plan_.workers}, deal.each + (lane < deal.more ? 1 : 0)};
  }
  /// Chunk `i` of the `count` chunks between two ranks in each epoch, or in this one.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr parcel parcel_of(int from, int to, int lane, int i,
                                                             int count,
                                                             std::uint64_t epoch) const noexcept {
    const auto at = static_cast<std::uint64_t>(i);
    if (plan_.most == 0)
      return {from, to, lane, (epoch - 1) * static_cast<std::uint64_t>(count) + at};
    const int set = static_cast<int>(epoch & 1U);
    return {from, to, set * plan_.workers + lane, (epoch - 1) / 2 * ring_.most_chunks + at};
  }

  // If runs have any count, only the roll call shows that a set of rooms is empty. A rank that has
  // ended a run knows that all have begun it. So all have ended the run before, whose set the next
  // run takes. In the bulk pattern a barrier shows the same.

  /// The first steps of the first worker: it signals to all others that this rank has begun.
  UNTAX_CALLS_ANY_SIDE
  template <class Emit>
  UNTAX_HOST_DEVICE constexpr void answer_roll_call(int worker, std::uint64_t epoch,
                                                    Emit&& emit) const {
    if (!calls_roll(worker)) return;
    for (int hop = 1; hop < world(); ++hop)
      emit(step{.publish = begun(rank(), receiver_at_hop(rank(), hop, world()), epoch)});
  }
  /// The last steps of the first worker: it waits until all other ranks have begun.
  UNTAX_CALLS_ANY_SIDE
  template <class Emit>
  UNTAX_HOST_DEVICE constexpr void end_roll_call(int worker, std::uint64_t epoch,
                                                 Emit&& emit) const {
    if (!calls_roll(worker)) return;
    for (int hop = 1; hop < world(); ++hop)
      emit(step{.acquire = begun(source_at_hop(rank(), hop, world()), rank(), epoch)});
  }

  /// Sends chunk `i` of lane `lane` to each peer, nearest first; false if no peer has this many.
  /// `chunks_to(peer)` are the chunks for a peer.
  UNTAX_CALLS_ANY_SIDE
  template <class ChunksTo, class Emit>
  UNTAX_HOST_DEVICE constexpr bool send_round(int lane, int i, std::uint64_t epoch,
                                              ChunksTo&& chunks_to, Emit&& emit) const {
    bool busy = false;
    const auto each_peer = [&](auto&& visit) {
      for (int hop = 1; hop < world(); ++hop) {
        const int peer = receiver_at_hop(rank(), hop, world());
        const lane_chunks all = chunks_to(peer);
        const int count = all.count();
        if (i < count) visit(parcel_of(rank(), peer, lane, i, count, epoch), all);
      }
    };
    // All waits come first, so that they overlap. All signals come last, so that one release serves
    // them: while stores to peers wait for the link, every access to memory takes long.
    each_peer(
        [&](const parcel& p, const lane_chunks&) { emit(step{.reserve = ring_.asked_of(p)}); });
    each_peer([&](const parcel& p, const lane_chunks& all) {
      busy = true;
      const range chunk = all.at(i);
      emit(step{.what = action::copy,
                .rows = 1,
                .cols = chunk.size,
                .from = in_a(chunk.begin),
                .to = ring_.place_of(p)});
    });
    each_peer(
        [&](const parcel& p, const lane_chunks&) { emit(step{.publish = ring_.room_of(p)}); });
    return busy;
  }
  /// Copies chunk `i` of a lane from every source, from hop `first` on, out of this rank's inbox;
  /// false if no source has this many. `chunks_from(source)` are the chunks of a source,
  /// `to(source, those, chunk)` is the destination of one.
  UNTAX_CALLS_ANY_SIDE
  template <class ChunksFrom, class To, class Emit>
  UNTAX_HOST_DEVICE constexpr bool take_all(const chunk_ring& ring, int first, int lane, int i,
                                            std::uint64_t epoch, ChunksFrom&& chunks_from, To&& to,
                                            Emit&& emit) const {
    bool busy = false;
    const auto each_source = [&](auto&& visit) {
      for (int hop = first; hop < world(); ++hop) {
        const int source = source_at_hop(rank(), hop, world());
        const lane_chunks all = chunks_from(source);
        const int count = all.count();
        if (i < count) visit(parcel_of(source, rank(), lane, i, count, epoch), all);
      }
    };
    // Grouped as above: a worker executes waits and signals sooner than it moves bytes.
    each_source(
        [&](const parcel& p, const lane_chunks&) { emit(step{.acquire = ring.room_of(p)}); });
    each_source([&](const parcel& p, const lane_chunks& all) {
      busy = true;
      const range chunk = all.at(i);
      emit(step{.what = action::copy,
                .rows = 1,
                .cols = chunk.size,
                .from = ring.place_of(p),
                .to = to(p.from, all, chunk)});
    });
    each_source(
        [&](const parcel& p, const lane_chunks&) { emit(step{.retire = ring.room_of(p)}); });
    return busy;
  }

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr place in_a(std::int64_t at) const noexcept {
    return {operand::a, rank(), 0, at};
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr place in_c(std::int64_t at) const noexcept {
    return {operand::c, rank(), 0, at};
  }

  UNTAX_CALLS_ANY_SIDE
  template <class Emit>
  UNTAX_HOST_DEVICE constexpr void pass_barrier(int kernel_index, std::uint64_t epoch,
                                                Emit&& emit) const {
    (kernel_index == 1 ? barrier_ : second_barrier_).program(epoch, emit);
  }

 private:
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr bool calls_roll(int worker) const noexcept {
    return plan_.most > 0 && worker == 0 && !is_bulk(plan_.how);
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr room begun(int who, int to,
                                                       std::uint64_t epoch) const noexcept {
    const int index = roll_.at(0, who, 0);
    return {.producer = who, .consumer = to, .number = index, .ready = index, .use = epoch};
  }
  /// The number of workers of fused_specialized that only copy out of rooms.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int takers() const noexcept {
    return ceil_div(plan_.workers, plan_.serves);
  }

  collective_plan plan_;
  int phases_;
  chunk_deal usual_;
  counter_layout layout_;

 protected:
  chunk_ring ring_;
  chunk_ring second_ring_;  ///< with two phases: for chunks that are passed on

 private:
  barrier_steps barrier_;
  barrier_steps second_barrier_;
  counter_block roll_;  ///< at each rank: the run that another one has begun
  int counters_;
};

}  // namespace untax

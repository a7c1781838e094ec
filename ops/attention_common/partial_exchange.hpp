#pragma once

#include <cstdint>

#include <untax/tile/counter_layout.hpp>
#include <untax/tile/order.hpp>
#include <untax/tile/protocol.hpp>

namespace untax {

/// Partial results of attention on their way from every rank to the ranks that merge them. An item
/// is sent and merged as a whole: some rows, the same number from every source. A room is (source,
/// item) in the inbox of a consumer, in two sets by epoch parity.
///
/// Rooms need no reserve: a source that fills a room again two epochs later has received the
/// consumer's item of the epoch between, which the consumer sent after it had read the room. So in
/// every epoch each rank sends every item to each other rank, even if the item has no rows.
class partial_exchange {
 public:
  constexpr partial_exchange() = default;
  /// `width`: columns of a partial result, with its statistics. `has_rooms`: without them a
  /// barrier orders everything.
  constexpr partial_exchange(counter_layout& layout, int rank, int world, int items,
                             std::int64_t width, bool has_rooms)
      : rank_(rank),
        world_(world),
        items_(items),
        width_(width),
        has_rooms_(has_rooms),
        ready_(layout.take(sets_.sets, world, items)) {}

  /// The inbox, [set, item, source, row], for items of `rows` rows at most.
  [[nodiscard]] constexpr extent inbox(std::int64_t rows) const noexcept {
    return {sets_.sets * items_ * world_ * rows, width_};
  }
  /// The place of the partial result of `source` at rank `at`, whose items have `rows` rows.
  [[nodiscard]] constexpr place slot(int at, std::int64_t rows, int item, int source,
                                     std::uint64_t epoch) const noexcept {
    const std::int64_t index =
        (static_cast<std::int64_t>(sets_.set_of(epoch)) * items_ + item) * world_ + source;
    return {operand::inbox, at, index * rows, 0};
  }

  /// Data that is sent to a peer: `rows` rows at `from`.
  struct part {
    place from;
    std::int64_t rows = 0;
  };
  /// Sends `part_for(peer)` to every peer, nearest first.
  template <class PartFor, class Emit>
  constexpr void push(int item, std::uint64_t epoch, const PartFor& part_for, Emit&& emit) const {
    for (int hop = 1; hop < world_; ++hop) {
      const int peer = receiver_at_hop(rank_, hop, world_);
      const part p = part_for(peer);
      const room r = arrival(rank_, peer, item, epoch);
      if (p.rows > 0) {
        emit(step{.what = action::copy,
                  .rows = p.rows,
                  .cols = width_,
                  .from = p.from,
                  .to = slot(peer, p.rows, item, rank_, epoch),
                  .publish = r});
      } else if (has_rooms_) {
        emit(step{.publish = r});
      }
    }
  }
  /// Waits until an item of all other ranks has arrived.
  template <class Emit>
  constexpr void await(int item, std::uint64_t epoch, Emit&& emit) const {
    for (int hop = 1; hop < world_ && has_rooms_; ++hop) {
      const int source = source_at_hop(rank_, hop, world_);
      emit(step{.acquire = arrival(source, rank_, item, epoch)});
    }
  }
  /// Merges the partial results of all ranks for an item of `rows` rows, in rank order.
  template <class Emit>
  constexpr void merge(int item, std::int64_t rows, const place& to, std::uint64_t epoch,
                       Emit&& emit) const {
    emit(step{.what = action::merge,
              .rows = rows,
              .cols = width_ - attention_statistics,
              .depth = world_,
              .from = slot(rank_, rows, item, 0, epoch),
              .to = to});
  }

 private:
  /// The room of an item of `source` in the inbox of `consumer`.
  [[nodiscard]] constexpr room arrival(int source, int consumer, int item,
                                       std::uint64_t epoch) const noexcept {
    if (!has_rooms_) return {};
    const int ready = ready_.at(sets_.set_of(epoch), source, item);
    return {.producer = source,
            .consumer = consumer,
            .number = ready,
            .ready = ready,
            .use = sets_.use_of(epoch)};
  }

  int rank_ = 0;
  int world_ = 1;
  int items_ = 0;
  std::int64_t width_ = 0;
  bool has_rooms_ = false;
  room_sets sets_{2};
  counter_block ready_;
};

}  // namespace untax

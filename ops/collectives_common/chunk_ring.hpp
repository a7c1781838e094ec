#pragma once

#include <cstdint>

#include <untax/core/host_device.hpp>
#include <untax/flow/room.hpp>
#include <untax/ops/collective_problems.hpp>
#include <untax/tile/counter_layout.hpp>
#include <untax/tile/order.hpp>
#include <untax/tile/step.hpp>

namespace untax {

/// The distribution of the chunks of a range over the lanes, in turn: `each` to every lane, one
/// more to the first `more` of them.
struct chunk_deal {
  std::int64_t size = -1;  ///< of the range
  int each = 0;
  int more = 0;

  chunk_deal() = default;
  UNTAX_HOST_DEVICE constexpr chunk_deal(std::int64_t of, std::int64_t chunk, int lanes) noexcept
      : size(of) {
    const int all = pieces{{0, of}, chunk}.count();
    each = all / lanes;
    more = all % lanes;
  }
};

/// The chunks of a range for a lane: that is one worker of each rank.
struct lane_chunks {
  pieces all;
  strided share;
  int count_of_lane = 0;

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int count() const noexcept { return count_of_lane; }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr range at(int i) const noexcept {
    return all.at(share.worker + i * share.workers);
  }
};

/// One chunk on its way from a rank to another one.
struct parcel {
  int from = 0;
  int to = 0;
  int lane = 0;  ///< numbered over both sets, if there are two
  /// The number of earlier chunks between these ranks on this lane, in all epochs.
  std::uint64_t number = 0;
};

/// Rooms for chunks in flight: for each lane and source a ring of `depth` rooms in the inbox of the
/// receiver. An inbox row is a room. The rooms of all sources with the same lane and turn are
/// adjacent rows, in rank order, so that a reduction finds its addends one row apart.
///
/// With one chunk an epoch and a depth of two these are the two sets by epoch parity of other
/// operators. With more chunks the ring goes round within an epoch, so that the memory does not
/// grow with the message.
///
/// If runs have any count (`collective_plan::most`), each begins with empty rooms. Runs alternate
/// between two sets of lanes, and a roll call separates them. A run counts on from the highest use
/// that the previous run in its set can have reached (chunked_layout.hpp).
struct chunk_ring {
  int world = 1;
  int depth = 1;
  /// log2 of the depth, or -1 if that is not whole: a division is slow in kernels.
  int shift = -1;
  bool has_rooms = true;  ///< false if barriers keep the order
  bool within = false;    ///< whether a rank's own chunks go from one worker to another in rooms
  std::uint64_t most_chunks = 0;  ///< of a lane in a run of any count, a multiple of depth; else 0
  std::int64_t first_row = 0;
  counter_block ready;  ///< at the receiver: [lane][turn][source]
  counter_block free;   ///< at the source: [lane][turn][receiver]

  UNTAX_HOST_DEVICE constexpr chunk_ring(const collective_plan& plan, counter_layout& layout,
                                         std::int64_t row) noexcept
      : world(plan.world),
        depth(plan.depth),
        shift(shift_of(plan.depth)),
        has_rooms(!is_bulk(plan.how)),
        within(plan.how == pattern::fused_specialized),
        most_chunks(most_chunks_of(plan)),
        first_row(row),
        ready(layout.take(lanes_of(plan), plan.depth, plan.world)),
        free(layout.take(lanes_of(plan), plan.depth, plan.world)) {}

  /// The lanes of both sets.
  [[nodiscard]] UNTAX_HOST_DEVICE static constexpr int lanes_of(
      const collective_plan& plan) noexcept {
    return plan.most > 0 ? 2 * plan.workers : plan.workers;
  }

  /// Rows of the inbox that `plan` needs for a ring.
  [[nodiscard]] UNTAX_HOST_DEVICE static constexpr std::int64_t rows_for(
      const collective_plan& plan) noexcept {
    return std::int64_t{lanes_of(plan)} * plan.depth * plan.world;
  }

  /// The room that the sender of a chunk reserves: none if the room is empty when the run begins.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr room asked_of(const parcel& p) const noexcept {
    if (most_chunks > 0 && p.number % most_chunks < static_cast<std::uint64_t>(depth)) return {};
    return room_of(p);
  }

  [[nodiscard]] UNTAX_HOST_DEVICE constexpr room room_of(const parcel& p) const noexcept {
    if (!has_rooms || (p.from == p.to && !within)) return {};
    const int index = ready.at(p.lane, turn_of(p), p.from);
    return {
        .producer = p.from,
        .consumer = p.to,
        .number = index,
        .ready = index,
        .free = free.at(p.lane, turn_of(p), p.to),
        .use = (shift < 0 ? p.number / static_cast<std::uint64_t>(depth) : p.number >> shift) + 1};
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr place place_of(const parcel& p) const noexcept {
    const std::int64_t turns = std::int64_t{p.lane} * depth + turn_of(p);
    return {operand::inbox, p.to, first_row + turns * world + p.from, 0};
  }

 private:
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int turn_of(const parcel& p) const noexcept {
    const auto turns = static_cast<std::uint64_t>(depth);
    return static_cast<int>(shift < 0 ? p.number % turns : p.number & (turns - 1));
  }
  [[nodiscard]] UNTAX_HOST_DEVICE static constexpr std::uint64_t most_chunks_of(
      const collective_plan& plan) noexcept {
    if (plan.most == 0) return 0;
    const int all = pieces{{0, plan.most}, plan.chunk}.count();
    const int of_lane = ceil_div(all, plan.workers);
    return static_cast<std::uint64_t>(round_up(of_lane > 0 ? of_lane : 1, plan.depth));
  }
  [[nodiscard]] UNTAX_HOST_DEVICE static constexpr int shift_of(int depth) noexcept {
    for (int shift = 0; shift < 31; ++shift) {
      if (1 << shift == depth) return shift;
    }
    return -1;
  }
};

}  // namespace untax

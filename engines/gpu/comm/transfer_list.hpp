#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <untax/core/host_device.hpp>
#include <untax/flow/room.hpp>
#include <untax/tile/program.hpp>
#include <untax/tile/step.hpp>

namespace untax::comm {

/// What a sender does next, in set 0 of its rooms: it waits, moves a rectangle to one rank or to
/// several whose hops follow each other, and signals each of them. Without rows it only waits or
/// signals. Counters are numbers, -1 for none.
struct transfer {
  operand from = operand::none;
  operand to = operand::none;
  bool fetches = false;        ///< reads at the peer and writes here; else it writes at the peer
  std::uint8_t credit = 1;     ///< the reserve waits for so many uses less than this one
  std::uint8_t hops = 1;       ///< to so many ranks, each one hop farther than the one before
  std::int16_t first_hop = 0;  ///< ranks from this one on; 0 is the rank itself
  std::int32_t from_row = 0;
  std::int32_t from_col = 0;
  std::int32_t to_row = 0;
  std::int32_t to_col = 0;
  std::int32_t rows = 0;
  std::int32_t cols = 0;
  std::int32_t reserve = -1;  ///< here, of rank 0: that of rank p is `p * readers` behind it
  std::int32_t acquire = -1;  ///< here
  std::int32_t publish = -1;  ///< at the peer; here, if it fetches
  std::int32_t retire = -1;   ///< at the peer

  friend bool operator==(const transfer&, const transfer&) = default;
};

/// How far things lie behind those of set 0 in the next set: rows of matrices, and counters by
/// verb.
struct set_shift {
  std::int32_t inbox_rows = 0;
  std::int32_t outbox_rows = 0;
  std::int32_t reserve = 0;
  std::int32_t acquire = 0;
  std::int32_t publish = 0;
  std::int32_t retire = 0;
};

/// What the senders of a rank do in a run, entry after entry. Runs differ by the set of rooms and
/// by the number of the use, and by nothing else.
struct transfer_lists {
  int rank = 0;
  int world = 1;
  room_sets sets;
  int readers = 1;  ///< of each room that is reserved
  set_shift shift;
  std::vector<std::vector<transfer>> senders;

  /// Calls `emit` for the steps of a sender in an epoch: each entry, hop by hop.
  void steps(std::size_t sender, std::uint64_t epoch, const program::sink& emit) const;
  [[nodiscard]] std::size_t entries() const noexcept;
};

/// Emits the steps of a worker in an epoch.
using step_source = std::function<void(int worker, std::uint64_t epoch, const program::sink& emit)>;

/// What the senders of a rank do.
struct sender_program {
  int rank = 0;
  int world = 1;
  int count = 1;   ///< of senders
  room_sets sets;  ///< of their rooms
  step_source steps;
};
/// That of a protocol, which has to outlive it: `senders()` many, each of which does what
/// `send(sender, epoch, emit)` emits.
template <class Protocol>
[[nodiscard]] sender_program senders_of(const Protocol& how) {
  return {how.rank(), how.world(), how.senders(), how.sets(),
          [&how](int sender, std::uint64_t epoch, const program::sink& emit) {
            how.send(sender, epoch, emit);
          }};
}

/// Writes the steps of senders, which copy, wait and signal, out as flat lists. Throws `internal`
/// for a program that such lists cannot say: one that computes, or whose epochs differ by more than
/// the set of rooms and the number of the use. All epochs are compared in which a set is used for
/// the first time or for the second.
[[nodiscard]] transfer_lists lower(const sender_program& program);

/// Where lists and a program part: the first difference, over the same epochs. Empty: they are the
/// same.
[[nodiscard]] std::string difference(const transfer_lists& lists, const sender_program& program);

/// What a sender of a kernel moves next: an entry of its list, as it lies in the memory of a GPU.
/// Two loads of 16 bytes.
struct alignas(16) packed_transfer {
  std::int32_t row = 0;  ///< of the rectangle, in the matrix that it is read from
  std::int32_t col = 0;
  std::int32_t rows = 0;
  std::int32_t cols = 0;
  std::int32_t acquire = -1;  ///< counter here that says that it may be read; -1: none
  std::int32_t publish = -1;  ///< counter at each peer that says that it has come; -1: none
  std::int16_t first_hop = 0;
  std::int16_t hops = 0;
  std::int32_t before = 0;  ///< what goes out before it, by all senders, counted by hops

  friend bool operator==(const packed_transfer&, const packed_transfer&) = default;
};
static_assert(sizeof(packed_transfer) == 32);

/// What the senders of a rank move, sender after sender; what only waits or signals is left out.
struct packed_lists {
  std::vector<packed_transfer> entries;
  std::vector<std::int32_t> begins;  ///< where each sender's begin, and the end
};
/// Of lists whose rectangles all go equally far; rows and columns are counted from these on.
/// `together`: hops that follow each other are one entry, equally many in all of a sender; else
/// each hop is one. Throws `internal` for other lists.
[[nodiscard]] packed_lists pack(const transfer_lists& lists, std::int64_t first_row,
                                std::int64_t first_col, bool together);

/// The same where a kernel reads it.
struct sender_lists {
  const packed_transfer* entries = nullptr;
  const std::int32_t* begins = nullptr;
};

}  // namespace untax::comm

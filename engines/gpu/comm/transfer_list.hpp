#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

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

/// Whose steps are lowered.
struct lowered_workers {
  int rank = 0;
  int world = 1;
  int count = 1;   ///< of workers
  room_sets sets;  ///< of their rooms
};

/// Writes the steps of workers, which copy, wait and signal, out as flat lists. Throws `internal`
/// for a program that such lists cannot say: one that computes, or whose epochs differ by more than
/// the set of rooms and the number of the use. All epochs are compared in which a set is used for
/// the first time or for the second.
[[nodiscard]] transfer_lists lower(const lowered_workers& of, const step_source& program);

/// Where lists and a program part: the first difference, over the same epochs. Empty: they are the
/// same.
[[nodiscard]] std::string difference(const transfer_lists& lists, const lowered_workers& of,
                                     const step_source& program);

}  // namespace untax::comm

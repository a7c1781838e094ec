#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <untax/core/host_device.hpp>
#include <untax/flow/room.hpp>
#include <untax/tile/program.hpp>
#include <untax/tile/step.hpp>

namespace untax::comm {

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

/// What a sender of a kernel moves next, in set 0 of its rooms: a rectangle, to one rank or to
/// several whose hops follow each other. As it lies in the memory of a GPU: two loads of 16 bytes.
struct alignas(16) transfer {
  std::int32_t row = 0;  ///< of the rectangle, in the matrix that it is read from
  std::int32_t col = 0;
  std::int32_t rows = 0;
  std::int32_t cols = 0;
  std::int32_t acquire = -1;   ///< counter here that says that it may be read; -1: none
  std::int32_t publish = -1;   ///< counter at each peer that signals its arrival; -1: none
  std::int16_t first_hop = 0;  ///< ranks from this one on; 0 is the rank itself
  std::int16_t hops = 0;
  std::int32_t before = 0;  ///< what goes out before it, by all senders, counted by hops

  friend bool operator==(const transfer&, const transfer&) = default;
};
static_assert(sizeof(transfer) == 32);

/// What the senders of a rank move, sender after sender.
struct transfer_lists {
  std::vector<transfer> entries;
  std::vector<std::int32_t> begins;  ///< where each sender's begin, and the end
};
/// Writes the steps of senders that push out as flat lists. What only waits or signals is left out,
/// and so is where things go and whom a sender asks before: kernels compute that. Columns are
/// counted from `first_col` on. `together`: hops that follow each other are one entry, equally many
/// in all of a sender; else each hop is one.
///
/// Throws `internal` for a program that such lists cannot say: one that computes or fetches, or
/// whose epochs differ in more than by how far the counters of a set lie behind those of set 0. All
/// epochs are compared in which a set is used for the first time or for the second.
[[nodiscard]] transfer_lists lower(const sender_program& program, std::int64_t first_col,
                                   bool together);

/// The same where a kernel reads it.
struct sender_lists {
  const transfer* entries = nullptr;
  const std::int32_t* begins = nullptr;
};

}  // namespace untax::comm

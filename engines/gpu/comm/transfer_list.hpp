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

/// The programs of the senders of a rank.
struct sender_program {
  int rank = 0;
  int world = 1;
  int count = 1;   ///< number of senders
  room_sets sets;  ///< the sets of the senders' rooms
  step_source steps;
};
/// The programs of a protocol's senders: each one executes the steps that `send(sender, epoch,
/// emit)` emits. The protocol has to outlive the result.
template <class Protocol>
[[nodiscard]] sender_program senders_of(const Protocol& how) {
  return {how.rank(), how.world(), how.senders(), how.sets(),
          [&how](int sender, std::uint64_t epoch, const program::sink& emit) {
            how.send(sender, epoch, emit);
          }};
}

/// A transfer of a sender in a kernel, for set 0 of its rooms: a rectangle, to one rank or to
/// several consecutive hops. This is the layout in GPU memory: two loads of 16 bytes.
struct alignas(16) transfer {
  std::int32_t row = 0;  ///< of the rectangle, in the matrix that it is read from
  std::int32_t col = 0;
  std::int32_t rows = 0;
  std::int32_t cols = 0;
  std::int32_t acquire = -1;   ///< counter here that signals that it may be read; -1: none
  std::int32_t publish = -1;   ///< counter at each peer that signals its arrival; -1: none
  std::int16_t first_hop = 0;  ///< the first receiver; 0 is the rank itself
  std::int16_t hops = 0;
  std::int32_t before = 0;  ///< copies that all senders send before it, one for each hop

  friend bool operator==(const transfer&, const transfer&) = default;
};
static_assert(sizeof(transfer) == 32);

/// The transfers of all senders of a rank, sender by sender.
struct transfer_lists {
  std::vector<transfer> entries;
  std::vector<std::int32_t> begins;  ///< where each sender's entries begin, and the end of all
};
/// Converts the steps of senders that push to flat lists. Steps that only wait or signal are left
/// out, and so are destinations and reserves: kernels compute these. Columns are relative to
/// `first_col`. `together`: consecutive hops form one entry, with equally many hops in all entries
/// of a sender; otherwise each hop is one entry.
///
/// Throws `internal` for a program that such lists cannot express: one that computes or fetches, or
/// whose epochs differ in more than the offset of a set's counters from those of set 0. All epochs
/// are compared in which a set is used for the first time or for the second.
[[nodiscard]] transfer_lists lower(const sender_program& program, std::int64_t first_col,
                                   bool together);

/// Transfer lists in memory that a kernel can read.
struct sender_lists {
  const transfer* entries = nullptr;
  const std::int32_t* begins = nullptr;
};

}  // namespace untax::comm

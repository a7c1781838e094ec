#pragma once

#include <cstddef>
#include <cstdint>

#include <untax/core/reduction.hpp>

#include "engines/gpu/collectives/code.hpp"
#include "engines/gpu/packets/messages.hpp"

namespace untax::gpu {

/// Collectives of few bytes: every message is packets that carry their own flag (rma/packet.cuh),
/// so a signal costs nothing and what was received is combined straight from registers.
///
/// Thread t of the grid has packets t, t + threads of the grid, ... of every message, and moves
/// several of them at a time, since a load and a look each take long; the grid is the same at all
/// ranks, so a block talks to the blocks with its number only.
///
/// The inbox of a rank: two sets, used in turn, for each phase; in a set `capacity` packets for
/// each source. A block may write into a set again when its partner at the receiver has read what
/// was there two epochs ago. It knows that without asking where the partner sends it something in
/// each epoch: the partner's packet of the last epoch was sent after the partner had ended the one
/// before. Where nothing comes back (a broadcast, unequal parts) the partner says so by a counter,
/// when it begins the next epoch: there it waits anyway, and what the last one read is behind it.
/// So it does where runs have any count, since a block may have nothing of one.
struct packet_layout {
  message_table messages;
  std::int64_t capacity = 0;  ///< packets of the largest message
  reduction how = reduction::sum;
  /// Every rank passes the part that it has combined on to all: a second phase.
  bool passes_on = false;
  int root = -1;           ///< of a relay: who has everything and needs nothing
  std::int64_t total = 0;  ///< of a relay: elements of the root

  /// Where packet `i` of a source lies in an inbox, counted in packets.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr std::int64_t slot(int phase, std::uint64_t epoch,
                                                              int source,
                                                              std::int64_t i) const noexcept {
    const auto set = static_cast<std::int64_t>(2 * phase) + static_cast<std::int64_t>(epoch & 1U);
    return (set * messages.ranks + source) * capacity + i;
  }
  /// Packets of an inbox.
  [[nodiscard]] constexpr std::size_t slots() const noexcept {
    return (passes_on ? 4 : 2) * static_cast<std::size_t>(messages.ranks) *
           static_cast<std::size_t>(capacity);
  }
  /// At the sender, the counter of a block and a receiver.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int counter(int block, int receiver) const noexcept {
    return block * messages.ranks + receiver;
  }
};

inline constexpr int packet_threads = 256;

/// Messages that go as they are. `sent` and `got` are those of an exchange.
[[nodiscard]] transfer_code packet_exchange(const message_table& messages, dtype type, int blocks);

/// A broadcast of `count` elements: the root sends each other rank its part, which passes it on to
/// the rest. `sent` is what goes to each rank in either phase, `got` the parts by owner.
[[nodiscard]] transfer_code packet_relay(const message_table& messages, dtype type, int root,
                                         std::int64_t count, int blocks);

/// Messages that are combined in rank order: `sent` by receiver; the result goes to `got` of the
/// own rank and, if it is passed on, those of others to theirs.
[[nodiscard]] transfer_code packet_reduction(const message_table& messages, dtype type,
                                             reduction how, bool passes_on, int blocks);

}  // namespace untax::gpu

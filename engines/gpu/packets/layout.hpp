#pragma once

#include <cstddef>
#include <cstdint>

#include <untax/core/reduction.hpp>

#include "engines/gpu/collectives/collective_kernel.hpp"
#include "engines/gpu/packets/messages.hpp"

namespace untax::gpu {

/// Collectives whose data carry their own flag, so that no separate signal is needed, and received
/// data are combined directly from registers. Data that arrive unchanged are sent as packets, of
/// which half is the flag (rma/packet.cuh): these are for few bytes. Data to be combined are sent
/// as words that are never zero (words/partial_words.cuh), 16 bytes of data at a time, which takes
/// links no longer than the data alone; the receiver resets the words to zero when it has taken
/// them. In the following, a packet stands for 16 bytes of either kind.
///
/// Each packet of a message belongs to one thread: packets t, t + n, ... to thread t of n, and 32
/// `parts` consecutive words to a warp. A thread moves several packets at a time, since each load
/// and each poll has a long latency. The grid is the same at all ranks, so a block exchanges
/// packets only with the peers' blocks of the same number (its partners).
///
/// The inbox of a rank has two sets for each phase, used in alternate epochs; a set has `capacity`
/// packets for each source. A block may overwrite a set once its partner at the receiver has read
/// the packets of two epochs ago. If the partner sends packets back in each epoch, no signal is
/// needed: the partner ended that epoch before it sent its packets of the next one. If the partner
/// sends nothing back (a broadcast, unequal parts), it raises a counter at the start of its next
/// epoch: it may wait there anyway, and its reads of the last epoch are complete. If runs may have
/// any count, a block may have no packets in one of them: then exchanges and broadcasts use
/// counters, and a block of a reduction exchanges an empty packet. In reductions, messages between
/// all ranks have the same size.
struct packet_layout {
  message_table messages;
  std::int64_t capacity = 0;  ///< packets of the largest message
  std::int64_t units = 0;     ///< reductions only: words of 16 bytes of each message of this run
  int parts = 1;              ///< reductions only: 32 times as many units make a batch of a warp
  int slabs = 1;              ///< of a set: one for each source, or for the only other rank
  reduction how = reduction::sum;
  /// Whether there is a second phase, in which ranks pass their own parts on to other ranks.
  bool passes_on = false;
  int root = -1;           ///< relay only: the rank that has all data and receives none
  std::int64_t total = 0;  ///< relay only: elements of the root

  /// Where packet `i` of a source lies in an inbox, counted in packets.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr std::int64_t slot(int phase, std::uint64_t epoch,
                                                              int source,
                                                              std::int64_t i) const noexcept {
    const auto set = static_cast<std::int64_t>(2 * phase) + static_cast<std::int64_t>(epoch & 1U);
    return (set * slabs + (slabs > 1 ? source : 0)) * capacity + i;
  }
  /// The number of packets of an inbox.
  [[nodiscard]] constexpr std::size_t slots() const noexcept {
    return (passes_on ? 4 : 2) * static_cast<std::size_t>(slabs) *
           static_cast<std::size_t>(capacity);
  }
  /// The index of the counter, at the sender, for a block and a receiver.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int counter(int block, int receiver) const noexcept {
    return block * messages.ranks + receiver;
  }
};

inline constexpr int packet_threads = 256;
inline constexpr int reduction_threads = 512;

/// An exchange: messages arrive unchanged. `sent` is by receiver, `got` by source.
[[nodiscard]] collective_kernel packet_exchange(const message_table& messages, dtype type,
                                                int blocks);

/// A broadcast of `count` elements. The root sends each other rank a part, which that rank passes
/// on to the remaining ranks. `sent` is by receiver, in this rank's sending phase; `got` by owner.
[[nodiscard]] collective_kernel packet_relay(const message_table& messages, dtype type, int root,
                                             std::int64_t count, int blocks);

/// A reduction: messages are combined in rank order. `sent` is by receiver. This rank's result goes
/// to `got[rank]`; with `passes_on`, the result of each other rank r goes to `got[r]`.
[[nodiscard]] collective_kernel packet_reduction(const message_table& messages, dtype type,
                                                 reduction how, bool passes_on, int blocks);

}  // namespace untax::gpu

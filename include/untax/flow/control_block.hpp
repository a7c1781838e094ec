#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <untax/core/host_device.hpp>

namespace untax {

/// The memory that the ranks of a world share besides their arenas. It lies at the start of the
/// segment. It is zero at first, which is its initial state, and consists of 64-bit words only.
/// Every access is atomic. `control` is its interface.

/// The most ranks of a world.
inline constexpr int max_ranks = 64;
/// The number of wait records of one rank. The first belongs to the rank's own waits (barrier,
/// agree), the others to its workers, and from `first_kernel_slot` on to its kernels.
inline constexpr int wait_slots = 256;
/// The number of last calls that are kept in full, so that ranks can compare their texts.
inline constexpr int ledger_entries = 32;
/// The most numbers of dropped objects that a rank publishes for one barrier.
inline constexpr int drops_a_barrier = 63;

/// The place where one worker waits, once it has waited for a while. `since` is written last and
/// cleared first.
struct wait_record {
  std::uint64_t since;  ///< nanoseconds of the monotonic clock; 0: it does not wait
  std::uint64_t where;  ///< verb, peer and room, packed
  std::uint64_t expected;
  std::uint64_t seen;
  std::uint64_t operator_name[4];
};
static_assert(sizeof(wait_record) == 64);

/// Packs `wait_record::where`: the verb in the low byte, then the peer (16 bits), then the room (32
/// bits).
[[nodiscard]] UNTAX_HOST_DEVICE constexpr std::uint64_t packed_place(std::uint8_t what, int peer,
                                                                     int room) noexcept {
  return what | std::uint64_t{static_cast<std::uint16_t>(peer)} << 8U |
         std::uint64_t{static_cast<std::uint32_t>(room)} << 24U;
}

/// One collective call of a rank: its text, a hash over all calls so far, and a hash over this call
/// alone.
struct ledger_entry {
  std::uint64_t sequence;  ///< from 1; written last
  std::uint64_t chain;
  std::uint64_t call;
  std::uint64_t length;
  std::uint64_t text[60];
};
static_assert(sizeof(ledger_entry) == 512);

/// Numbers of objects that a rank has dropped, ascending, as it publishes them for one barrier.
struct drop_list {
  std::uint64_t total;  ///< numbers that the rank drops in the whole exchange, to which this
                        ///< barrier belongs
  std::uint64_t numbers[drops_a_barrier];
};

/// The words of one rank.
struct rank_block {
  std::uint64_t status;
  std::uint64_t process;  ///< process id; 0 in a world of threads
  std::uint64_t posted;   ///< sequence number of the last entry in the ledger
  /// 1 + the slot of the kernel's wait that gave up; then whether a wait was stopped. See
  /// `device_control`.
  std::uint64_t kernel_outcome[2];
  std::uint64_t spare[3];
  std::uint64_t arrived[max_ranks];  ///< by rank: the number of barriers that it has entered
  wait_record waits[wait_slots];
  std::uint64_t progress[wait_slots];  ///< `wait_site::progress` of each wait record
  ledger_entry ledger[ledger_entries];
  drop_list dropped[2];  ///< by the parity of the barrier
};

/// The reason why the world was stopped. The claim decides which rank may write; the flag is set
/// when the other fields are written.
struct stop_block {
  std::uint64_t claim;  ///< reporter + 1
  std::uint64_t flag;
  std::uint64_t code;
  std::uint64_t suspect;  ///< rank + 1; 0: no particular rank
  std::uint64_t length;
  std::uint64_t text[1019];
};
static_assert(sizeof(stop_block) == 8192);

/// The whole region; the block of rank r is `ranks[r]`.
struct control_block {
  stop_block stop;
  rank_block ranks[max_ranks];
};
static_assert(std::is_standard_layout_v<control_block> && std::is_trivial_v<control_block>);

}  // namespace untax

#pragma once

#include <cstdint>

#include <untax/core/host_device.hpp>

namespace untax {

/// One use of a room: a region that `producer` fills and `consumer` reads, and that is filled again
/// later.
///
/// Two kinds of counters guard it, named by (rank, index):
/// * `ready`, at the consumer: publish raises it to `use`, and acquire waits for that;
/// * `free`, at the producer: one counter for each of the `readers` workers of the consumer. retire
///   raises it to `use`; reserve waits until all of them have reached `use - credit`.
///
/// Each counter has exactly one writer and its values are absolute, so a signal that is repeated
/// does no harm. `credit` is 1 for a room that is free before its first use, and 0 for one that its
/// consumer has to open for each use. `free < 0` marks a flag: a room without bytes, which carries
/// order only and is never waited for by its producer.
struct room {
  int producer = -1;
  int consumer = -1;
  int number = -1;  ///< its number in messages
  int ready = -1;
  int free = -1;
  int readers = 1;
  std::uint64_t use = 0;
  std::uint64_t credit = 1;

  /// Whether the object names a room. A step has unnamed rooms for the verbs that it does not have.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr bool named() const noexcept { return number >= 0; }
  /// The value of the `free` counters that reserve waits for.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr std::uint64_t needed_free() const noexcept {
    return use > credit ? use - credit : 0;
  }
};

/// Sets of rooms that epochs use in turn: epoch e (from 1) uses set (e - 1) mod `sets`. With two
/// sets a reserve normally finds its counter raised already.
struct room_sets {
  int sets = 2;

  /// The set of an epoch.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int set_of(std::uint64_t epoch) const noexcept {
    if (sets <= 2) return sets == 2 ? static_cast<int>((epoch - 1) & 1U) : 0;
    return static_cast<int>((epoch - 1) % static_cast<std::uint64_t>(sets));
  }
  /// The number of the use of its set, from 1.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr std::uint64_t use_of(
      std::uint64_t epoch) const noexcept {
    // The epochs are divided without a division, which is slow on a GPU.
    if (sets <= 2) return (sets == 2 ? (epoch - 1) >> 1U : epoch - 1) + 1;
    return (epoch - 1) / static_cast<std::uint64_t>(sets) + 1;
  }
};

}  // namespace untax

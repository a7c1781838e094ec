#pragma once

#include <cstdint>

#include <untax/flow/control_block.hpp>

namespace untax {

/// The first wait record of kernels. Those before belong to threads of the host.
inline constexpr int first_kernel_slot = 64;
/// The number of wait records of the kernels of a rank.
inline constexpr int kernel_slots = wait_slots - first_kernel_slot;

/// A kernel's view of its rank and the world, passed by value. The rank's device can access every
/// pointer; the host must not access any.
///
/// A wait that fails leaves its record in place, from which the host reports the waits of all
/// ranks:
///
/// * A wait that took longer than `limit_ns` raises the stop word of its own rank. If no other wait
///   had raised it, it also writes 1 + its slot into `outcome[0]` unless a value is there, and then
///   1 into the stop word of every rank, all with release order.
/// * A wait that found a stop word raised writes 1 into `outcome[1]`.
///
/// Then the kernel leaves through its normal exit, and `world::check` throws the reason.
struct device_control {
  int rank = 0;
  int ranks = 1;
  wait_record* records = nullptr;            ///< host memory: the `wait_slots` records of this rank
  std::uint64_t* progress = nullptr;         ///< host memory: `wait_site::progress` of each record
  const std::uint64_t* host_stop = nullptr;  ///< host memory: not 0 once the world is stopped
  std::uint64_t* stop = nullptr;             ///< this rank's stop word, in its device memory
  std::uint64_t stop_span = 0;               ///< bytes between the stop words of neighbouring ranks
  std::uint64_t* outcome = nullptr;          ///< host memory: the two words described above
  std::uint64_t limit_ns = 0;                ///< the limit of a wait in nanoseconds; 0: none
  std::int64_t clock_offset = 0;  ///< the host's monotonic clock minus %globaltimer, in nanoseconds
};

}  // namespace untax

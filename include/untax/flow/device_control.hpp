#pragma once

#include <cstdint>

#include <untax/flow/control_block.hpp>

namespace untax {

/// Kernels use the wait records from here on; those before belong to threads of the host.
inline constexpr int first_kernel_slot = 64;
inline constexpr int kernel_slots = wait_slots - first_kernel_slot;

/// What a kernel knows about its rank and the world, passed by value. Every pointer can be followed
/// by the rank's device; none may be followed on the host.
///
/// A wait that fails leaves its record in place, from which the host reports who waited for whom:
///
/// * It took longer than `limit_ns`: it raises its own rank's stop word, and if nobody had, writes
///   `outcome[0]` (1 + its slot) if that is 0, then 1 into the stop word of every rank, all with
///   release order.
/// * It found a stop word: it writes 1 into `outcome[1]`.
///
/// Then the kernel leaves through its normal exit, and `world::check` throws the reason.
struct device_control {
  int rank = 0;
  int ranks = 1;
  wait_record* records = nullptr;            ///< host memory: the `wait_slots` records of this rank
  std::uint64_t* progress = nullptr;         ///< host memory: by record, `wait_site::progress`
  const std::uint64_t* host_stop = nullptr;  ///< host memory: not 0 once the world is stopped
  std::uint64_t* stop = nullptr;             ///< this rank's stop word, in its device memory
  std::uint64_t stop_span = 0;               ///< bytes between the stop words of neighbouring ranks
  std::uint64_t* outcome = nullptr;          ///< host memory: two words, see above
  std::uint64_t limit_ns = 0;                ///< how long a wait may take; 0: for ever
  std::int64_t clock_offset = 0;  ///< nanoseconds of the host's monotonic clock less %globaltimer
};

}  // namespace untax

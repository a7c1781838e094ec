#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <untax/trace/record.hpp>

#include "engines/gpu/trace/event_word.hpp"

namespace untax::gpu {

/// The events of one warp, as they were stored in memory.
struct warp_ring {
  int group = 0;  ///< kernel group, see `ring_table`
  int block = 0;
  int warp = 0;
  std::uint64_t noted = 0;          ///< number of events ever recorded
  std::vector<trace_event> events;  ///< those not overwritten, the oldest first
};

/// Counters of an operator: their addresses at this rank and, as mapped at this rank, at its peers.
struct counter_range {
  std::uint64_t local = 0;
  std::int64_t span = 0;  ///< bytes from a rank's counters to the next rank's
  std::uint64_t count = 0;
  int first = 0;  ///< the number of the range's first counter in the record
};

/// Converts %globaltimer of a GPU to the monotonic clock of its host, by a line through two
/// readings of both.
struct clock_line {
  std::uint64_t first = 0;        ///< %globaltimer at the first reading
  std::int64_t first_offset = 0;  ///< the host's clock minus %globaltimer there
  std::uint64_t second = 0;       ///< 0: there is only one reading
  std::int64_t second_offset = 0;

  [[nodiscard]] std::uint64_t on_host(std::uint64_t time) const noexcept;
};

/// All events that a rank's kernels recorded for an operator.
struct kernel_record {
  int rank = 0;
  int ranks = 1;
  std::vector<warp_ring> rings;
  std::vector<counter_range> counters;
  clock_line clock;
  /// The host's time at the call of each run, from the first run on. Empty if one of them is
  /// unknown, as in graphs.
  std::vector<std::uint64_t> calls;
  std::uint64_t without_ring = 0;  ///< warps that got no ring
};

/// "producer", "sender", ...
[[nodiscard]] std::string_view name_of(warp_role role) noexcept;

/// Adds kernels, workers, runs and stages to `op`. A worker is a warp that has a ring. A run begins
/// with its call, if that is known, but not before the end of the run before; otherwise with its
/// first kernel. It ends with its last kernel. Kernels that overlap form a stage. A run that has
/// lost events has spans of warps, but no span of its own.
void decode(const kernel_record& record, traced_operator& op);

}  // namespace untax::gpu

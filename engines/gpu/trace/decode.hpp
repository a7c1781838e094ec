#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <untax/trace/record.hpp>

#include "engines/gpu/trace/event_word.hpp"

namespace untax::gpu {

/// What one warp noted, as it lay in memory.
struct warp_ring {
  int group = 0;  ///< of kernels, see `ring_table`
  int block = 0;
  int warp = 0;
  std::uint64_t noted = 0;          ///< how many events ever
  std::vector<trace_event> events;  ///< those that are left, the oldest first
};

/// Counters of an operator: their addresses at this rank and at its peers, as this rank sees them.
struct counter_range {
  std::uint64_t local = 0;
  std::int64_t span = 0;  ///< bytes from a rank's to the next one's
  std::uint64_t count = 0;
  int first = 0;  ///< the number of the first one in the record
};

/// From %globaltimer of a GPU to the monotonic clock of its host: a line through two moments at
/// which both were read.
struct clock_line {
  std::uint64_t first = 0;        ///< by %globaltimer
  std::int64_t first_offset = 0;  ///< what the host's clock was ahead then
  std::uint64_t second = 0;       ///< 0: there is one moment only
  std::int64_t second_offset = 0;

  [[nodiscard]] std::uint64_t on_host(std::uint64_t time) const noexcept;
};

/// All that a rank's kernels noted of an operator.
struct kernel_record {
  int rank = 0;
  int ranks = 1;
  std::vector<warp_ring> rings;
  std::vector<counter_range> counters;
  clock_line clock;
  /// When runs were called, by the host's clock, from the first one on; empty if that is not known
  /// of all, as of those in graphs.
  std::vector<std::uint64_t> calls;
  std::uint64_t without_ring = 0;  ///< warps that found no ring
};

/// "producer", "sender", ...
[[nodiscard]] std::string_view name_of(warp_role role) noexcept;

/// Adds to `op` its kernels, workers, runs and stages. A worker is a warp that has a ring. A run
/// begins with its call, where that is known, but not before the last one's end; else with its
/// first kernel. It ends with its last kernel. Kernels that run beside each other are a stage. Of
/// runs that have lost something there are spans, but no run.
void decode(const kernel_record& record, traced_operator& op);

}  // namespace untax::gpu

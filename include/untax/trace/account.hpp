#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <untax/trace/record.hpp>

namespace untax {

/// The parts of the time of a run.
enum class trace_part : std::uint8_t {
  compute,  ///< actions that compute
  /// from the call to the first step of a kernel, between stages, and from the last kernel to the
  /// return
  launch,
  late_peer,  ///< a wait, until the peer signals
  in_flight,  ///< a wait, from the peer's signal to its end
  movement,   ///< copies that a worker makes itself
  tail,       ///< a worker that has ended its kernel, until the stage ends
  idle,       ///< between steps, without a kernel, or after the rank has ended its run
  entry,      ///< skew at entry: from the first rank's call to this one's
};
inline constexpr std::size_t trace_parts = 8;

/// The name of a part: "compute", "late peer", ...
[[nodiscard]] std::string_view name_of(trace_part part) noexcept;

/// The seconds of each part.
struct trace_breakdown {
  std::array<double, trace_parts> seconds{};

  [[nodiscard]] double& operator[](trace_part part) noexcept {
    return seconds[static_cast<std::size_t>(part)];
  }
  [[nodiscard]] double operator[](trace_part part) const noexcept {
    return seconds[static_cast<std::size_t>(part)];
  }
  [[nodiscard]] double total() const noexcept;
  /// Adds `times` times the parts of `other`.
  void add(const trace_breakdown& other, double times) noexcept;
  bool operator==(const trace_breakdown&) const = default;
};

/// A part of the critical path. Times are nanoseconds of the monotonic clock.
struct path_piece {
  trace_part part = trace_part::idle;
  int rank = 0;   ///< the rank that spent the time
  int peer = -1;  ///< of a wait: the awaited rank; -1: not known, or no wait
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// A sum over the critical path: the seconds of `part` at `rank`.
struct trace_cause {
  trace_part part = trace_part::compute;
  int rank = 0;
  int peer = -1;
  double seconds = 0;

  /// "launch at rank 1", "in flight from rank 1 to rank 0".
  [[nodiscard]] std::string text() const;
};

/// One run of an operator by all ranks, from the first rank's call to the last one's return. The
/// parts add up to that time in two ways: for each rank, as the mean over its workers, and along
/// the critical path.
struct run_account {
  std::int64_t epoch = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::vector<trace_breakdown> ranks;  ///< by rank
  trace_breakdown path;
  /// The critical path, from the last return back to the first call. At a wait it continues at the
  /// peer that signalled last.
  std::vector<path_piece> pieces;
  /// waits whose signal is not in the record; all of their time counts as late peer
  int unmatched = 0;

  /// The time of the run in seconds.
  [[nodiscard]] double wall() const noexcept { return static_cast<double>(end - begin) * 1e-9; }
};

/// One operator, with all of its runs that are completely in the record.
struct operator_account {
  std::uint64_t id = 0;
  std::string name;
  std::string label;
  std::vector<run_account> runs;
  /// Means over the third of the runs whose times are nearest the median. The means of the parts
  /// add up, too.
  double wall = 0;
  std::vector<trace_breakdown> ranks;  ///< by rank
  trace_breakdown path;
  std::vector<trace_cause> causes;  ///< along the path, the largest first
};

/// A piece of one worker's time in a run, in seconds since the start of the run.
struct timeline_piece {
  trace_part part = trace_part::idle;
  int rank = 0;
  int worker = 0;
  double begin = 0;
  double end = 0;
  /// For a part in flight: the rank and worker that signalled, and the time of the signal. -1: not
  /// recorded, or another part.
  int from_rank = -1;
  int from_worker = -1;
  double sent = 0;
  bool operator==(const timeline_piece&) const = default;
};

/// The parts of all workers, without idle time and tails, in the run whose time is the median.
/// `account` is an account of `record`.
[[nodiscard]] std::vector<timeline_piece> typical_timeline(const trace_record& record,
                                                           const operator_account& account);

/// The accounts of all operators that have a complete run, in the order in which rank 0 made them.
[[nodiscard]] std::vector<operator_account> accounts_of(const trace_record& record);

}  // namespace untax

#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <untax/trace/account.hpp>

#include "match.hpp"

namespace untax {

/// A period of one worker's time.
struct piece {
  trace_part part = trace_part::idle;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  int peer = -1;
  const trace_span* wait = nullptr;  ///< of late_peer and in_flight
};

/// The spans of `spans` that lie in `outer`. `spans` has to be sorted by ends.
[[nodiscard]] std::vector<const trace_span*> within(const std::vector<trace_span>& spans,
                                                    const trace_span& outer);

class worker_time;

/// The time of a run as the workers of a rank spent it.
class rank_time {
 public:
  rank_time(const traced_operator& op, const signal_index& signals, const trace_span& call,
            const std::vector<trace_span>& stages, std::uint64_t begin, std::uint64_t end);

  [[nodiscard]] trace_breakdown mean() const;
  /// The piece of a worker that contains the moment before `time`; null if there is none.
  [[nodiscard]] const piece* before(std::size_t worker, std::uint64_t time) const;
  /// The last moment before `time` at which a worker was busy, if that is after `since`; else
  /// `since`. With `waits`, only waits count as busy.
  [[nodiscard]] std::uint64_t busy_before(std::size_t worker, std::uint64_t time,
                                          std::uint64_t since, bool waits) const;
  /// The worker whose kernel ended last before `time`, and the time of that end. `time` is the end
  /// of a stage or of the call. Nothing if no kernel of the run ended before.
  [[nodiscard]] std::optional<std::pair<std::size_t, std::uint64_t>> last_kernel_before(
      std::uint64_t time) const;
  /// The worker whose kernel began first in the run, and the time; nothing if there is none.
  [[nodiscard]] std::optional<std::pair<std::size_t, std::uint64_t>> first_kernel() const;
  /// The pieces of each worker, in order and without gaps.
  [[nodiscard]] const std::vector<std::vector<piece>>& workers() const noexcept { return workers_; }
  [[nodiscard]] int unmatched() const noexcept { return unmatched_; }
  [[nodiscard]] const trace_span& call() const noexcept { return call_; }
  [[nodiscard]] const traced_operator& op() const noexcept { return op_; }

 private:
  [[nodiscard]] std::vector<piece> time_of(const std::vector<trace_span>& spans,
                                           std::uint64_t begin, std::uint64_t end);
  void in_kernel(worker_time& time, const std::vector<trace_span>& spans, const trace_span& kernel);

  const traced_operator& op_;
  const signal_index& signals_;
  const trace_span& call_;
  const std::vector<trace_span>& stages_;
  std::vector<std::vector<piece>> workers_;
  int unmatched_ = 0;
};

}  // namespace untax

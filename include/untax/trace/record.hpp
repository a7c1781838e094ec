#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <untax/flow/fault_tap.hpp>
#include <untax/tile/step.hpp>
#include <untax/trace/ring.hpp>

namespace untax {

/// A recorded activity of a worker, from `begin` to `end`, in nanoseconds of the monotonic clock,
/// which is the same for all processes of a host. The end of a signal is its begin.
struct trace_span {
  trace_kind kind = trace_kind::run;
  int what = 0;  ///< an `action`, or a `channel_verb`
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::int64_t number = 0;  ///< epoch, stage, kernel, or use; see `trace_kind`
  /// Of waits and signals: the counter, by the rank at which it lies and its index.
  int owner = -1;
  int counter = -1;  ///< -1 for data that are their own signal
  int count = 1;  ///< of a run its stages, of a stage its workers, of a wait its counters, in a row
  int peer = -1;  ///< of a wait: the rank that raises the counter; -1: not known
  int room = -1;  ///< of a wait: its name in messages

  bool operator==(const trace_span&) const = default;
};

/// A kernel of an operator's program. If runs differ, it is that of the largest run.
struct trace_kernel {
  std::string name;
  int stage = 0;
  int workers = 1;

  bool operator==(const trace_kernel&) const = default;
};

/// A worker with a name of its own: a warp of a kernel.
struct trace_worker {
  std::string name;  ///< "CTA 3, warp 0, producer"
  int block = -1;    ///< workers of one block hand work to each other
  int cluster = -1;  ///< the first block of a cluster, whose blocks load for each other

  bool operator==(const trace_worker&) const = default;
};

/// The events of one rank in one operator, from its construction to its end.
struct traced_operator {
  std::uint64_t id = 0;  ///< the same at all ranks, and different from all other operators
  /// the same at all ranks, and different from all worlds at the same time
  std::uint64_t world = 0;
  std::string name;
  std::string label;  ///< the program's name for it; may be empty
  int rank = 0;
  int ranks = 1;
  std::vector<trace_kernel> kernels;
  std::vector<trace_span> calls;                 ///< runs and their stages, on the calling threads
  std::vector<std::vector<trace_span>> workers;  ///< by worker, in the order of their ends
  std::vector<trace_worker> names;               ///< by worker; empty if they only have numbers
  std::uint64_t lost = 0;                        ///< events that had no room

  bool operator==(const traced_operator&) const = default;
};

/// All operators that were recorded.
struct trace_record {
  std::vector<traced_operator> operators;

  /// The number of events: one for a signal, two for each other span.
  [[nodiscard]] std::uint64_t events() const noexcept;
  /// The number of events that had no room.
  [[nodiscard]] std::uint64_t lost() const noexcept;
  /// One line of text without an end of line: "5120 events of 2 ranks; all fitted".
  [[nodiscard]] std::string summary() const;
  bool operator==(const trace_record&) const = default;
};

/// The spans of the events of a ring buffer, in the order of their ends. A span without its begin
/// or its end is left out.
[[nodiscard]] std::vector<trace_span> spans_of(const std::vector<trace_event>& events);

/// The name of a kind: "run", "kernel", "wait", ...
[[nodiscard]] std::string_view name_of(trace_kind kind) noexcept;
/// The name of an action: "copy", "multiply", ...
[[nodiscard]] std::string_view name_of(action what) noexcept;
/// Whether the action moves data and computes nothing.
[[nodiscard]] constexpr bool moves(action what) noexcept { return what == action::copy; }

}  // namespace untax

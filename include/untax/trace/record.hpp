#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <untax/flow/fault_tap.hpp>
#include <untax/tile/step.hpp>
#include <untax/trace/ring.hpp>

namespace untax {

/// Something that a worker was at, from `begin` to `end`, in nanoseconds of the monotonic clock,
/// which is the same for all processes of a host. A signal ends when it begins.
struct trace_span {
  trace_kind kind = trace_kind::run;
  int what = 0;  ///< an `action`, or a `channel_verb`
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::int64_t number = 0;  ///< epoch, stage, kernel, or use; see `trace_kind`
  /// Of waits and signals: the counter, by the rank it lies at and its index.
  int owner = -1;
  int counter = -1;  ///< -1 of data that tell of themselves
  int count = 1;  ///< of a run its stages, of a stage its workers, of a wait its counters, in a row
  int peer = -1;  ///< of a wait: the rank that raises the counter; -1: not known
  int room = -1;  ///< of a wait: its name in messages

  bool operator==(const trace_span&) const = default;
};

/// A kernel of an operator's program; where runs differ, that of the largest.
struct trace_kernel {
  std::string name;
  int stage = 0;
  int workers = 1;

  bool operator==(const trace_kernel&) const = default;
};

/// A worker that has a name of its own: a warp of a kernel.
struct trace_worker {
  std::string name;  ///< "CTA 3, warp 0, producer"
  int block = -1;    ///< workers of one block hand work to each other
  int cluster = -1;  ///< of blocks that read for each other: the first one

  bool operator==(const trace_worker&) const = default;
};

/// What one rank did in one operator, from its making to its end.
struct traced_operator {
  std::uint64_t id = 0;     ///< the same at all ranks, and of no other operator
  std::uint64_t world = 0;  ///< the same at all ranks; no two worlds at a time have the same
  std::string name;
  std::string label;  ///< what the program called it; may be empty
  int rank = 0;
  int ranks = 1;
  std::vector<trace_kernel> kernels;
  std::vector<trace_span> calls;                 ///< runs and their stages, on the calling threads
  std::vector<std::vector<trace_span>> workers;  ///< each by the time of its end
  std::vector<trace_worker> names;               ///< of all workers; empty: they have numbers
  std::uint64_t lost = 0;                        ///< events that did not fit

  bool operator==(const traced_operator&) const = default;
};

/// Everything that was recorded.
struct trace_record {
  std::vector<traced_operator> operators;

  /// Events: of what lasts two, of a signal one.
  [[nodiscard]] std::uint64_t events() const noexcept;
  [[nodiscard]] std::uint64_t lost() const noexcept;
  /// "5120 events of 2 ranks; all fitted": one line for people, without an end of line.
  [[nodiscard]] std::string summary() const;
  bool operator==(const trace_record&) const = default;
};

/// What a ring holds as spans, by the time of their ends. What lost its beginning, or never ended,
/// is left out.
[[nodiscard]] std::vector<trace_span> spans_of(const std::vector<trace_event>& events);

/// "run", "kernel", "wait", ...
[[nodiscard]] std::string_view name_of(trace_kind kind) noexcept;
/// "copy", "multiply", ...
[[nodiscard]] std::string_view name_of(action what) noexcept;
/// Whether it brings data from one place to another and computes nothing.
[[nodiscard]] constexpr bool moves(action what) noexcept { return what == action::copy; }

}  // namespace untax

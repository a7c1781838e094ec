#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include <untax/trace/record.hpp>

namespace untax {

/// How a trace is recorded.
struct trace_options {
  /// Where it is written, in the JSON format of Chrome's trace events, which Perfetto reads. Empty:
  /// nowhere.
  std::string path;
  /// Room for each worker of each operator, and for its caller; an event has 16 bytes.
  std::size_t events_per_worker = std::size_t{1} << 14;
};

/// Records what operators do that are made on the host from now on, in this process. With ranks as
/// processes every rank has to call it, with the same path, before it makes the operators; a
/// difference is `disagreement`. Throws `invalid_argument` if the path cannot be written, or if a
/// trace is being recorded.
///
/// The variable UNTAX_TRACE does the same for any program, when its first operator is made, and
/// `stop_trace` when it exits. A process that is killed, or leaves by _exit, writes nothing.
void start_trace(const trace_options& options);

/// Ends the recording and writes the file; ranks that are processes add theirs to it, one after the
/// other. Returns what the file holds so far, or without a file what was recorded here. No operator
/// may run meanwhile. Throws `invalid_argument` if no trace is being recorded, or if the file
/// cannot be written.
trace_record stop_trace();

/// Whether what this thread makes is recorded. Throws `invalid_argument` if UNTAX_TRACE cannot be
/// used.
[[nodiscard]] bool is_tracing();

/// While it lives, operators that this thread makes are called `text` in traces.
class trace_label {
 public:
  explicit trace_label(std::string text);
  trace_label(const trace_label&) = delete;
  trace_label& operator=(const trace_label&) = delete;
  ~trace_label();

  /// The one that holds for this thread; empty if there is none.
  [[nodiscard]] static const std::string& current() noexcept;

 private:
  std::string before_;
};

/// While it lives, operators that this thread makes are not recorded: what is compared with those
/// that are.
class trace_pause {
 public:
  trace_pause();
  trace_pause(const trace_pause&) = delete;
  trace_pause& operator=(const trace_pause&) = delete;
  ~trace_pause();
};

/// What is recorded of one operator at one rank: a source that a session asks when it ends.
class trace_source {
 public:
  trace_source() = default;
  trace_source(const trace_source&) = delete;
  trace_source& operator=(const trace_source&) = delete;
  virtual ~trace_source() = default;
  [[nodiscard]] virtual traced_operator collect() const = 0;
};

/// For engines: room for each worker, while a trace is recorded.
[[nodiscard]] std::size_t trace_room();
/// For engines: makes the source known to the session. It is asked when the session ends, or when
/// `forget_source` says that it will be gone.
void add_source(std::shared_ptr<const trace_source> source);
void forget_source(const trace_source& source);

}  // namespace untax

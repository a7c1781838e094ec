#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include <untax/trace/record.hpp>

namespace untax {

/// Options of a trace.
struct trace_options {
  /// The file to which the trace is written, in the JSON format of Chrome's trace events, which
  /// Perfetto reads. Empty: none.
  std::string path;
  /// The number of events that are kept of each worker of each operator, and of its caller. An
  /// event has 16 bytes.
  std::size_t events_per_worker = std::size_t{1} << 14;
};

/// Records the operators that this process makes from now on. On GPUs they record only in a build
/// with kernel traces; in other builds their constructors throw `unsupported` meanwhile. If ranks
/// are processes, every rank has to call it, with the same path, before it makes the operators; a
/// difference is `disagreement`. Throws `invalid_argument` if the path cannot be written, or if a
/// trace is being recorded already.
///
/// The variable UNTAX_TRACE does the same for any program when its first operator is made, and
/// `stop_trace` when it exits. A process that is killed, or leaves by _exit, writes nothing.
void start_trace(const trace_options& options);

/// Ends the recording and writes the file. Ranks that are processes add their parts to the file,
/// one after the other. It returns the content of the file so far or, without a file, the record of
/// this process. No operator may run meanwhile. Throws `invalid_argument` if no trace is being
/// recorded, `internal` if the file cannot be written.
trace_record stop_trace();

/// Whether operators that this thread makes are recorded. Throws `invalid_argument` if the value of
/// UNTAX_TRACE cannot be used.
[[nodiscard]] bool is_tracing();

/// A scope in which operators that this thread makes have the label `text` in traces.
class trace_label {
 public:
  explicit trace_label(std::string text);
  trace_label(const trace_label&) = delete;
  trace_label& operator=(const trace_label&) = delete;
  ~trace_label();

  /// The label of this thread; empty if there is none.
  [[nodiscard]] static const std::string& current() noexcept;

 private:
  std::string before_;
};

/// A scope in which operators that this thread makes are not recorded, for comparison with those
/// that are.
class trace_pause {
 public:
  trace_pause();
  trace_pause(const trace_pause&) = delete;
  trace_pause& operator=(const trace_pause&) = delete;
  ~trace_pause();
};

/// The record of one operator at one rank, which a session collects when it ends.
class trace_source {
 public:
  trace_source() = default;
  trace_source(const trace_source&) = delete;
  trace_source& operator=(const trace_source&) = delete;
  virtual ~trace_source() = default;
  /// Returns the record so far. The session calls it once, while no run is in progress.
  [[nodiscard]] virtual traced_operator collect() const = 0;
};

/// For engines: the number of events that a worker may keep while a trace is recorded.
[[nodiscard]] std::size_t trace_room();
/// For engines: registers a source with the session, which collects it when it ends, or when
/// `forget_source` announces its end.
void add_source(std::shared_ptr<const trace_source> source);
void forget_source(const trace_source& source);

}  // namespace untax

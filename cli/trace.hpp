#pragma once

#include <string>
#include <vector>

#include <untax/core/memory_kind.hpp>
#include <untax/taxes/report.hpp>
#include <untax/trace/account.hpp>
#include <untax/trace/session.hpp>

#include "bench/suites/trace_cost.hpp"

namespace untax::cli {

/// Throws `invalid_argument` for "-", and `unsupported` if this build cannot record in a world of
/// `where`.
void require_traceable(const std::string& path, memory_kind where);

/// Records operators as long as it exists, if `path` is not empty.
class trace_recording {
 public:
  /// `room` is the number of events that are kept of each worker.
  explicit trace_recording(std::string path, std::size_t room = trace_options{}.events_per_worker);
  trace_recording(const trace_recording&) = delete;
  trace_recording& operator=(const trace_recording&) = delete;
  ~trace_recording();

  [[nodiscard]] bool active() const noexcept { return active_; }
  /// Ends the recording and writes the file.
  [[nodiscard]] trace_record finish();

 private:
  std::string path_;
  bool active_;
};

/// The trace that ranks have written to `path`. Throws `invalid_argument`.
[[nodiscard]] trace_record read_trace(const std::string& path);

/// The parts of the time of each operator: along the critical path, and at each rank.
[[nodiscard]] std::string text_of(const std::vector<operator_account>& accounts, int width,
                                  text_style style);

/// Prints the accounts, and a line that the file was written.
void show_trace(const trace_record& record, const std::string& path);
/// Prints a line that the file was written.
void show_trace_file(const trace_record& record, const std::string& path);

/// The cost of recording, with its bar.
[[nodiscard]] std::string text_of(const bench::trace_cost& cost);

}  // namespace untax::cli

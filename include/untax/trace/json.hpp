#pragma once

#include <string>
#include <string_view>

#include <untax/trace/record.hpp>

namespace untax {

/// The record in the JSON format of Chrome's trace events. A rank is a process, a worker a thread,
/// and thread 0 is the caller. Arrows go from a signal to the waits for it. `otherData` holds the
/// fields that events have no place for, so that `trace_from_json` returns the whole record.
[[nodiscard]] std::string to_trace_json(const trace_record& record);

/// Reads the text of `to_trace_json`. Throws `invalid_argument` for any other text, with the event
/// that is wrong.
[[nodiscard]] trace_record trace_from_json(std::string_view text);

}  // namespace untax

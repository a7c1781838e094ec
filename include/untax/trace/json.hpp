#pragma once

#include <string>
#include <string_view>

#include <untax/trace/record.hpp>

namespace untax {

/// The record in the JSON form of Chrome's trace events. A rank is a process, a worker a thread,
/// and the thread 0 is the caller. Arrows go from a signal to the waits for it. `otherData` holds
/// what has no place in events, so that `trace_from_json` gets the whole record back.
[[nodiscard]] std::string to_trace_json(const trace_record& record);

/// Reads what `to_trace_json` wrote, and nothing else: throws `invalid_argument` with the event
/// that is wrong.
[[nodiscard]] trace_record trace_from_json(std::string_view text);

}  // namespace untax

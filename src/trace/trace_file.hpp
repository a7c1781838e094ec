#pragma once

#include <string>

#include <untax/trace/record.hpp>

namespace untax {

/// Throws `invalid_argument` if no file can be written at `path`. Creates a file if there is none.
void require_writable(const std::string& path);

/// Writes the record to `path`. If other ranks of the same operators have written there, the file
/// keeps their records. Returns the contents of the file.
[[nodiscard]] trace_record write_trace(const std::string& path, trace_record mine);

/// Ends the recording, if there is one, because the program ends. Unlike `stop_trace` it leaves the
/// file alone if nothing was recorded: a command that was refused does not replace an existing
/// trace. Throws `internal` if the file cannot be written.
void end_trace();

}  // namespace untax

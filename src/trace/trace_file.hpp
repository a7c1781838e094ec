#pragma once

#include <string>

#include <untax/trace/record.hpp>

namespace untax {

/// Throws `invalid_argument` if no file can be written at `path`. It makes an empty one.
void require_writable(const std::string& path);

/// Writes the record to `path`. If another rank of the same operators has written there, what it
/// wrote is kept, and the file holds both. Returns what the file holds.
[[nodiscard]] trace_record write_trace(const std::string& path, trace_record mine);

}  // namespace untax

#pragma once

#include <string>

namespace untax::cli {

/// Throws `invalid_argument` if no file can be written at `path`; looks before the work begins.
/// "-", which stands for stdout, always can.
void require_writable(const std::string& path);

/// Writes `text` to a file and says so on stdout, or for "-" to stdout. Throws `invalid_argument`
/// if that fails.
void write_json(const std::string& path, const std::string& text);

}  // namespace untax::cli

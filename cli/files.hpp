#pragma once

#include <string>

namespace untax::cli {

/// Why no file can be written at `path`, and what would be right; empty if one can. "-", which
/// stands for stdout, always can.
[[nodiscard]] std::string why_not_writable(const std::string& path);

/// Writes `text` to a file and says so on stdout, or prints it for "-". Throws `output_lost`.
void write_json(const std::string& path, const std::string& text);

}  // namespace untax::cli

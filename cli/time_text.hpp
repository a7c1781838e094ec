#pragma once

#include <string>

#include <fmt/format.h>

namespace untax::cli {

/// "12.3": a time in a table.
[[nodiscard]] inline std::string microseconds(double seconds) {
  return fmt::format("{:.1f}", 1e6 * seconds);
}

/// The same of a time that may not have been measured; then `otherwise`.
[[nodiscard]] inline std::string microseconds_or(const char* otherwise, double seconds) {
  return seconds > 0 ? microseconds(seconds) : otherwise;
}

}  // namespace untax::cli

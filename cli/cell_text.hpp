#pragma once

#include <cstdint>
#include <string>

#include <fmt/format.h>

namespace untax::cli {

/// "64 KB", "256 MB": for tables of sizes that are powers of two.
[[nodiscard]] inline std::string size_text(std::int64_t bytes) {
  return bytes >= 1 << 20 ? fmt::format("{} MB", bytes >> 20) : fmt::format("{} KB", bytes >> 10);
}

/// "12.3": a time in a table.
[[nodiscard]] inline std::string microseconds(double seconds) {
  return fmt::format("{:.1f}", 1e6 * seconds);
}

/// A time as `microseconds` writes it, or `otherwise` if it was not measured.
[[nodiscard]] inline std::string microseconds_or(const char* otherwise, double seconds) {
  return seconds > 0 ? microseconds(seconds) : otherwise;
}

}  // namespace untax::cli

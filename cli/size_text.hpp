#pragma once

#include <cstdint>
#include <string>

#include <fmt/format.h>

namespace untax::cli {

/// "64 KB", "256 MB": for tables of sizes that are powers of two.
[[nodiscard]] inline std::string size_text(std::int64_t bytes) {
  return bytes >= 1 << 20 ? fmt::format("{} MB", bytes >> 20) : fmt::format("{} KB", bytes >> 10);
}

}  // namespace untax::cli

#pragma once

#include <cstddef>
#include <string>

#include "src/core/text_file.hpp"

namespace untax {

/// A gzip file that unpacks to more than `bytes_at_once` may not unpack to more than this many
/// times its own size. Real tables and matrices reach about 50.
inline constexpr std::size_t most_unpacked_ratio = 200;
inline constexpr std::size_t bytes_at_once = std::size_t{64} << 20;

/// The text of a file as `text_of_file` reads it, unpacked if it is compressed by gzip; `limits`
/// apply to both. Throws `invalid_argument` with the path also if the file is damaged.
[[nodiscard]] std::string unpacked_text_of_file(const std::string& path, const file_limits& limits);

}  // namespace untax

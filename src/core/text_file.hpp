#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace untax {

/// Bounds of a file that is read whole.
struct file_limits {
  std::size_t bytes = std::size_t{32} << 20;
};

/// The text of a regular file. Throws `invalid_argument` with the path if there is no such file, if
/// it is a folder, a pipe or a device, and if it is longer than `limits`.
[[nodiscard]] std::string text_of_file(const std::string& path, const file_limits& limits = {});

/// "32 MiB", or "1000 bytes".
[[nodiscard]] std::string size_text(std::size_t bytes);

/// `text` without the byte order mark that programs of Windows write. Throws `invalid_argument`
/// with `origin` if the text is UTF-16.
[[nodiscard]] std::string_view utf8_text(std::string_view text, std::string_view origin);

/// The first control character in `text`, as "U+001B", other than tab, line feed and carriage
/// return; empty if there is none. Terminals act on them, so no name of a file may have one.
[[nodiscard]] std::string control_character_in(std::string_view text);

}  // namespace untax

#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

// All output of the command goes through these functions, so that nothing is lost without an error.
// No other file of the command writes to stdout.

namespace untax::cli {

/// Output could not be written completely. The exit status is 1.
class output_lost : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Has to be called first in `main`. Makes writes to a closed standard stream fail; otherwise the
/// next file that is opened would get its number, and receive the output. Makes a pipe without a
/// reader an error of a write, not a signal.
void prepare_output();

/// Prints `text` on stdout. `finish_output` reports a failure to write it.
void print(std::string_view text);

/// Prints text for people: lines that are wider than the terminal are broken.
void show(std::string_view text);

/// As above, for a format with arguments.
template <class First, class... Rest>
void show(fmt::format_string<First, Rest...> format, First&& first, Rest&&... rest) {
  show(fmt::format(format, std::forward<First>(first), std::forward<Rest>(rest)...));
}

/// "1 rank", "2 ranks".
[[nodiscard]] std::string counted(std::int64_t number, std::string_view thing);

/// Has to be called last if all went well. Throws `output_lost` if some output was not written.
/// A reader that has closed its pipe is no loss.
void finish_output();

/// Flushes stdout, then prints "untax: <text>" on stderr. A text of several lines keeps them; other
/// control characters are shown as "?".
void complain(std::string_view text);

/// Writes `text` to the file `path`, or prints it if `path` is "-". Throws `output_lost`.
void write_text(const std::string& path, std::string_view text);

}  // namespace untax::cli

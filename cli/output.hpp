#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

// What the command prints goes through here, so that nothing of it is lost without an error. No
// other file of the command writes to stdout.

namespace untax::cli {

/// Something that was printed or written did not arrive. The exit status is 1.
class output_lost : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Comes before everything else in `main`. A standard stream that is closed refuses what is
/// written to it from now on: its number would go to the next file that is opened, and what is
/// printed would land in there. A pipe whose reader is gone is an error, not a signal.
void prepare_output();

/// Prints `text` on stdout. What cannot be written is found out by `finish_output` at the latest.
void print(std::string_view text);

/// Prints text for people: lines that are wider than the terminal are broken.
void show(std::string_view text);

/// The same of what `format` makes of the arguments.
template <class First, class... Rest>
void show(fmt::format_string<First, Rest...> format, First&& first, Rest&&... rest) {
  show(fmt::format(format, std::forward<First>(first), std::forward<Rest>(rest)...));
}

/// Comes last where all went well. Throws `output_lost` if not all of what was printed has arrived.
void finish_output();

/// One line on stderr, "untax: <text>", after what stdout still holds. A text of several lines
/// keeps them; other control characters are shown as "?".
void complain(std::string_view text);

/// Writes `text` to the file `path`, or prints it if that is "-". Throws `output_lost`.
void write_text(const std::string& path, std::string_view text);

}  // namespace untax::cli

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace untax::cli {

/// Accepts whole numbers from `least` to `most`; the error for others names these limits.
[[nodiscard]] CLI::Validator between(std::int64_t least, std::int64_t most);

/// As `between`, without a useful upper bound.
[[nodiscard]] inline CLI::Validator at_least(std::int64_t least) {
  return between(least, 2147483647);
}

/// Accepts numbers of 0 or more that a float can hold; neither nan nor inf.
[[nodiscard]] CLI::Validator not_negative();

/// Accepts paths at which a file can be written, and "-", which stands for stdout.
[[nodiscard]] CLI::Validator writable_file();

/// The words that an option accepts, for completion. The validator accepts any text: a verb that
/// refuses a word names the nearest one (names.hpp).
[[nodiscard]] CLI::Validator words(const std::vector<std::string>& accepted);

/// The words of an option; empty if it accepts other texts.
[[nodiscard]] std::vector<std::string> words_of(CLI::Option& option);

/// Replaces the value of an option as `resolve_shipped` (files.hpp) does.
[[nodiscard]] CLI::Validator shipped_file(const char* folder);

/// Adds --trace, which sets `path`.
void add_trace_option(CLI::App& verb, std::string& path);

/// The names of the subcommands of `app`, in their order.
[[nodiscard]] std::vector<std::string> names_of_subcommands(const CLI::App& app);

/// Makes `verb`, a subcommand of the command, require one of its own subcommands. Without one it
/// throws `invalid_argument`, which lists them; `what` describes the argument: "the operator".
void expect_subcommand(CLI::App& verb, std::string what);

}  // namespace untax::cli

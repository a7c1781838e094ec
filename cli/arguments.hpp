#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace untax::cli {

/// Accepts whole numbers from `least` to `most`; the error for others names these limits.
[[nodiscard]] CLI::Validator between(std::int64_t least, std::int64_t most);

/// The same without a useful upper bound.
[[nodiscard]] inline CLI::Validator at_least(std::int64_t least) {
  return between(least, 2147483647);
}

/// Accepts numbers of 0 or more that a float can hold; neither nan nor inf.
[[nodiscard]] CLI::Validator not_negative();

/// Accepts paths at which a file can be written, and "-", which stands for stdout.
[[nodiscard]] CLI::Validator writable_file();

/// The words that an option takes, for completion. It accepts all: a verb names the nearest word
/// to one that it refuses (names.hpp).
[[nodiscard]] CLI::Validator words(const std::vector<std::string>& accepted);

/// The words of an option; empty if it takes others.
[[nodiscard]] std::vector<std::string> words_of(CLI::Option& option);

}  // namespace untax::cli

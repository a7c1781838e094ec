#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "src/core/text_file.hpp"

namespace untax {

/// Bounds of a JSON document, and the end of the texts that refuse it.
struct json_rules {
  std::size_t bytes = file_limits{}.bytes;
  /// Accept NaN, Infinity, -Infinity, and numbers beyond double, as Python's json module does. The
  /// reader of a number then has to check that it is finite.
  bool non_finite = false;
  /// Accept control characters in texts. Code that prints a text then has to check it.
  bool control_characters = false;
  /// The end of every error, after "; ".
  std::string_view advice = {};
};

/// The levels of lists and objects that a document may have. The functions that copy, print and
/// compare values call themselves for each level.
inline constexpr int most_json_levels = 100;

/// Reads a JSON document. This is the only JSON reader of the project. `Json` is nlohmann::json or
/// nlohmann::ordered_json. Throws `invalid_argument`, with `origin` and line and column, for text
/// that is not JSON, is nested deeper than `most_json_levels` or breaks `rules`.
template <class Json = nlohmann::json>
[[nodiscard]] Json parse_json(std::string_view text, std::string_view origin,
                              const json_rules& rules = {});

/// `parse_json` for the text of a file (`text_of_file`).
template <class Json = nlohmann::json>
[[nodiscard]] Json read_json(const std::string& path, const json_rules& rules = {});

/// A value in an error: its text, shortened, or "a list" and "an object".
template <class Json>
[[nodiscard]] std::string shown(const Json& value);

}  // namespace untax

#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace untax::cli {

/// The name in `known` that `text` was probably meant to be; empty if none is near.
[[nodiscard]] std::string nearest(std::string_view text, const std::vector<std::string>& known);

/// "; did you mean run?", or nothing.
[[nodiscard]] std::string did_you_mean(std::string_view text,
                                       const std::vector<std::string>& known);

/// "a, b or c".
[[nodiscard]] std::string alternatives(const std::vector<std::string>& known);

/// The index of `text` in `known`. Throws `invalid_argument` that names `what`, `text`, the right
/// words and the nearest name.
[[nodiscard]] std::size_t place_in(std::string_view what, std::string_view text,
                                   const std::vector<std::string>& known);

/// The element of `values` whose name, by `name_of`, is `text`. Throws as `place_in`.
template <class Values>
[[nodiscard]] auto named(std::string_view what, std::string_view text, const Values& values) {
  std::vector<std::string> known;
  for (const auto& value : values) known.emplace_back(name_of(value));
  return values[place_in(what, text, known)];
}

}  // namespace untax::cli

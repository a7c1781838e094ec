#pragma once

#include <string>
#include <string_view>

#include <untax/select/selector.hpp>

namespace untax::select {

/// The selector as JSON, with the schema that it was trained for.
[[nodiscard]] std::string to_json(const selector& s);
/// Reads the text of `to_json`. `origin` names the text in errors. Throws `invalid_argument`.
[[nodiscard]] selector read_selector(std::string_view text, std::string_view origin);

/// A C++17 header that needs nothing but the standard library: the trees as tables, and as a
/// readable if-else that makes the same choices, bit for bit. `space` is the namespace. Throws
/// `invalid_argument` if it is not an identifier.
[[nodiscard]] std::string to_header(const selector& s, std::string_view space);

/// The three trees as indented text.
[[nodiscard]] std::string to_text(const selector& s);
/// The three trees as an SVG picture with one leaf on each line.
[[nodiscard]] std::string to_svg(const selector& s);

}  // namespace untax::select

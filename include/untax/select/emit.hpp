#pragma once

#include <string>
#include <string_view>

#include <untax/select/selector.hpp>

namespace untax::select {

/// A selector as JSON, with the schema that it was trained for.
[[nodiscard]] std::string to_json(const selector& s);
/// Reads it back. `origin` names the text in errors. Throws `invalid_argument`.
[[nodiscard]] selector read_selector(std::string_view text, std::string_view origin);

/// A C++17 header that needs nothing but the standard library: the trees as tables, and as a
/// readable if-else that makes the same choices, bit for bit. `space` is the namespace. Throws
/// `invalid_argument` if that is no identifier.
[[nodiscard]] std::string to_header(const selector& s, std::string_view space);

/// Three trees as indented text.
[[nodiscard]] std::string to_text(const selector& s);
/// The same as a picture, one leaf a line.
[[nodiscard]] std::string to_svg(const selector& s);

}  // namespace untax::select

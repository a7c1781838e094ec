#pragma once

#include <string>

namespace untax::cli {

/// The bytes of a PNG file of an SVG picture, with two pixels for each unit. librsvg and cairo,
/// which are loaded at the first call, draw it. Throws `unsupported` with the names of their
/// packages if they are missing, and `invalid_argument` if `svg` is not SVG.
[[nodiscard]] std::string png_of(const std::string& svg);

}  // namespace untax::cli

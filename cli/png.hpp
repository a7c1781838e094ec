#pragma once

#include <string>

namespace untax::cli {

/// A picture in SVG as a PNG file's bytes, two pixels for each of its units. librsvg and cairo draw
/// it; they are looked for when it is called. Throws `unsupported` where they are not, which says
/// which packages have them, and `invalid_argument` for what is no SVG.
[[nodiscard]] std::string png_of(const std::string& svg);

}  // namespace untax::cli

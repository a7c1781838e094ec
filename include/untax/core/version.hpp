#pragma once

#include <string_view>

namespace untax {

/// The version of the library. All ranks of a world have to use the same one.
inline constexpr std::string_view version = "0.2.0";

}  // namespace untax

#pragma once

#include <cstdint>
#include <string_view>

namespace untax {

/// The elements that normalised rows are written as: the type of the input, or e4m3 with a scale.
/// The value of an e4m3 element is the element times the scale.
enum class norm_output : std::uint8_t {
  same,            ///< the element type of the input
  e4m3,            ///< divided by a scale that the caller gives
  e4m3_per_token,  ///< each row has its own scale, with which its largest element becomes 448
};

/// The name of `output` in options and messages.
[[nodiscard]] constexpr std::string_view name_of(norm_output output) noexcept {
  constexpr std::string_view names[] = {"same", "e4m3", "e4m3_per_token"};
  return names[static_cast<std::uint8_t>(output)];
}

}  // namespace untax

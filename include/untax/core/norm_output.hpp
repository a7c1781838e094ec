#pragma once

#include <cstdint>
#include <string_view>

namespace untax {

/// What normalised rows are written as: elements of the type that they were
/// made of, or e4m3 with a scale: what stands there times the scale is the
/// value.
enum class norm_output : std::uint8_t {
  same,
  e4m3,            ///< divided by a scale that the caller gives
  e4m3_per_token,  ///< the scale of a row has its largest element become 448
};

[[nodiscard]] constexpr std::string_view name_of(norm_output output) noexcept {
  constexpr std::string_view names[] = {"same", "e4m3", "e4m3_per_token"};
  return names[static_cast<std::uint8_t>(output)];
}

}  // namespace untax

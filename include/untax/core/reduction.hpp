#pragma once

#include <cstdint>
#include <string_view>

#include <untax/core/host_device.hpp>

namespace untax {

/// How the contributions of ranks become one.
enum class reduction : std::uint8_t { sum, max, min };

[[nodiscard]] constexpr std::string_view name_of(reduction how) noexcept {
  constexpr std::string_view names[] = {"sum", "max", "min"};
  return names[static_cast<std::uint8_t>(how)];
}

/// `so_far` and one more contribution. Extremes of which one is NaN are NaN. Written so that host
/// and device give the same bits, and that a loop over it becomes vector instructions.
template <class T>
[[nodiscard]] UNTAX_HOST_DEVICE constexpr T combined(reduction how, T so_far, T next) noexcept {
  switch (how) {
    case reduction::sum:
      return so_far + next;
    case reduction::max:
      return ((next > so_far) | (next != next)) != 0 ? next : so_far;
    case reduction::min:
      return ((next < so_far) | (next != next)) != 0 ? next : so_far;
  }
  return so_far;
}

}  // namespace untax

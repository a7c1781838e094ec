#pragma once

#include <cstdint>
#include <string_view>

#include <untax/core/host_device.hpp>

namespace untax {

/// The operation that combines the contributions of all ranks.
enum class reduction : std::uint8_t { sum, max, min };

/// The name of `how` in options and messages.
[[nodiscard]] constexpr std::string_view name_of(reduction how) noexcept {
  constexpr std::string_view names[] = {"sum", "max", "min"};
  return names[static_cast<std::uint8_t>(how)];
}

/// Combines `so_far` with one more contribution. A maximum or minimum is NaN if one argument is
/// NaN. The expression gives the same bits on host and device, and the compiler can vectorise a
/// loop over it.
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

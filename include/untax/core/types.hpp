#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <untax/core/host_device.hpp>

namespace untax {

/// Element types of matrices. Sums are accumulated in fp32, whatever the type of the elements.
enum class dtype : std::uint8_t { f32, f16, bf16 };

/// Bytes of one element.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr std::size_t size_of(dtype type) noexcept {
  return type == dtype::f32 ? 4 : 2;
}

/// "fp32", "fp16" or "bf16".
[[nodiscard]] constexpr std::string_view name_of(dtype type) noexcept {
  switch (type) {
    case dtype::f32:
      return "fp32";
    case dtype::f16:
      return "fp16";
    case dtype::bf16:
      return "bf16";
  }
  return "?";
}

/// ceil(a / b) for a >= 0, b > 0.
template <class Integer>
[[nodiscard]] UNTAX_HOST_DEVICE constexpr Integer ceil_div(Integer a, Integer b) noexcept {
  return (a + b - 1) / b;
}

/// The smallest multiple of `step` that is not below `a`.
template <class Integer>
[[nodiscard]] UNTAX_HOST_DEVICE constexpr Integer round_up(Integer a, Integer step) noexcept {
  return ceil_div(a, step) * step;
}

}  // namespace untax

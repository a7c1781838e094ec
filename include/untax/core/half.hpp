#pragma once

#include <bit>
#include <concepts>
#include <cstdint>

#include <untax/core/types.hpp>

namespace untax {

/// bfloat16: the upper half of an fp32. Conversion rounds to nearest even; NaN stays NaN.
struct bf16 {
  std::uint16_t bits = 0;

  bf16() = default;
  explicit bf16(float value) noexcept {
    auto u = std::bit_cast<std::uint32_t>(value);
    if ((u & 0x7fffffffU) > 0x7f800000U) {
      bits = static_cast<std::uint16_t>((u >> 16) | 0x40U);
    } else {
      bits = static_cast<std::uint16_t>((u + 0x7fffU + ((u >> 16) & 1U)) >> 16);
    }
  }
  explicit operator float() const noexcept {
    return std::bit_cast<float>(std::uint32_t{bits} << 16);
  }
};

/// IEEE binary16. Conversion rounds to nearest even; overflow becomes infinity.
struct f16 {
  std::uint16_t bits = 0;

  f16() = default;
  explicit f16(float value) noexcept : bits(narrow(value)) {}
  explicit operator float() const noexcept { return widen(bits); }

 private:
  static std::uint16_t narrow(float value) noexcept {
    const auto u = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = (u >> 16) & 0x8000U;
    std::uint32_t magnitude = u & 0x7fffffffU;
    if (magnitude > 0x7f800000U) return static_cast<std::uint16_t>(sign | 0x7e00U);
    if (magnitude >= 0x47800000U) return static_cast<std::uint16_t>(sign | 0x7c00U);
    if (magnitude < 0x38800000U) {
      // Subnormal results: adding 0.5 lets the fp32 adder do the rounding at bit 2^-24.
      const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
      return static_cast<std::uint16_t>(sign |
                                        (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000U));
    }
    magnitude += 0xc8000fffU + ((magnitude >> 13) & 1U);
    return static_cast<std::uint16_t>(sign | (magnitude >> 13));
  }
  static float widen(std::uint16_t half) noexcept {
    const std::uint32_t sign = (half & 0x8000U) << 16;
    const std::uint32_t magnitude = half & 0x7fffU;
    if (magnitude >= 0x7c00U) {
      return std::bit_cast<float>(sign | 0x7f800000U | ((magnitude & 0x3ffU) << 13));
    }
    // 2^112 moves the exponent bias from 15 to 127 and turns subnormals into normal numbers.
    const float scaled = std::bit_cast<float>(magnitude << 13) * 0x1p112F;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(scaled));
  }
};

/// An element type of C++ that has a `dtype`.
template <class T>
concept matrix_element = std::same_as<T, float> || std::same_as<T, f16> || std::same_as<T, bf16>;

/// The `dtype` of an element type of C++.
template <matrix_element T>
inline constexpr dtype dtype_of = dtype::f32;
template <>
inline constexpr dtype dtype_of<f16> = dtype::f16;
template <>
inline constexpr dtype dtype_of<bf16> = dtype::bf16;

}  // namespace untax

#pragma once

#include <bit>
#include <cstdint>

namespace untax {

/// The 8-bit floating point type e4m3 of the Open Compute Project (OFP8, revision 1.0): a sign bit,
/// four exponent bits with bias 7, and three mantissa bits. It has no infinity, and one NaN for
/// each sign. Conversion rounds to nearest even and saturates at 448; NaN stays NaN.
struct e4m3 {
  static constexpr float largest = 448.0F;

  std::uint8_t bits = 0;

  e4m3() = default;
  explicit e4m3(float value) noexcept : bits(narrow(value)) {}
  explicit operator float() const noexcept { return widen(bits); }

 private:
  static std::uint8_t narrow(float value) noexcept {
    const auto u = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = (u >> 24) & 0x80U;
    std::uint32_t magnitude = u & 0x7fffffffU;
    if (magnitude > 0x7f800000U) return static_cast<std::uint8_t>(sign | 0x7fU);
    if (magnitude >= 0x43e00000U) return static_cast<std::uint8_t>(sign | 0x7eU);
    if (magnitude < 0x3c800000U) {
      // Subnormal results: adding 2^14 lets the fp32 adder do the rounding at bit 2^-9.
      const float shifted = std::bit_cast<float>(magnitude) + 0x1p14F;
      return static_cast<std::uint8_t>(sign |
                                       (std::bit_cast<std::uint32_t>(shifted) - 0x46800000U));
    }
    magnitude += 0x7ffffU + ((magnitude >> 20) & 1U);
    return static_cast<std::uint8_t>(sign | ((magnitude >> 20) - (120U << 3U)));
  }
  static float widen(std::uint8_t byte) noexcept {
    const std::uint32_t sign = static_cast<std::uint32_t>(byte & 0x80U) << 24;
    const std::uint32_t magnitude = byte & 0x7fU;
    if (magnitude == 0x7fU) return std::bit_cast<float>(sign | 0x7fc00000U);
    // 2^120 moves the exponent bias from 7 to 127 and turns subnormals into normal numbers.
    const float scaled = std::bit_cast<float>(magnitude << 20) * 0x1p120F;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(scaled));
  }
};

}  // namespace untax

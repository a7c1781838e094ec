#pragma once

#include <bit>
#include <cstdint>

#include <untax/core/host_device.hpp>

namespace untax::order {

/// Divides numbers from 0 to 2^31 - 1 by a divisor of 1 to 2^31 - 1 that is known in advance. It
/// uses a multiplication and a shift, where a division on a GPU is a long chain of instructions.
/// (Granlund and Montgomery, Division by invariant integers using multiplication, 1994.) A divisor
/// below 1 counts as 1.
class divider {
 public:
  constexpr divider() = default;
  constexpr explicit divider(int by) {
    if (by < 1) return;
    shift_ = static_cast<std::uint32_t>(std::bit_width(static_cast<std::uint32_t>(by) - 1));
    const std::uint64_t one = std::uint64_t{1} << (31 + shift_);
    const auto divisor = static_cast<std::uint64_t>(by);
    factor_ = static_cast<std::uint32_t>((one + divisor - 1) / divisor);
  }

  /// `of` divided by the divisor, rounded down.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int quotient(int of) const {
    // Only the upper half of the product of twice the number is needed, which a GPU gets in one
    // step.
    const std::uint64_t product = std::uint64_t{2 * static_cast<std::uint32_t>(of)} * factor_;
    return static_cast<int>(static_cast<std::uint32_t>(product >> 32) >> shift_);
  }

 private:
  std::uint32_t factor_ = std::uint32_t{1} << 31;  // the factor of a division by 1
  std::uint32_t shift_ = 0;
};

}  // namespace untax::order

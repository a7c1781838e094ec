#pragma once

#include <cstdint>
#include <string_view>

#include <untax/core/host_device.hpp>

namespace untax {

/// The function behind a linear layer. The gated ones take two columns of the product for each
/// column of the result.
enum class activation_function : std::uint8_t {
  none,
  silu,       ///< x / (1 + exp(-x))
  gelu,       ///< x / 2 * (1 + erf(x / sqrt(2)))
  gelu_tanh,  ///< x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))
  swiglu,     ///< silu(gate) * up
  geglu,      ///< gelu_tanh(gate) * up
};

/// The name of `a` in options and messages.
[[nodiscard]] constexpr std::string_view name_of(activation_function a) noexcept {
  constexpr std::string_view names[] = {"none", "silu", "gelu", "gelu_tanh", "swiglu", "geglu"};
  return names[static_cast<std::uint8_t>(a)];
}
[[nodiscard]] UNTAX_HOST_DEVICE constexpr bool is_gated(activation_function a) noexcept {
  return a == activation_function::swiglu || a == activation_function::geglu;
}

/// Columns of gate and of up that lie together in a product: eight of gate, eight of up, and so on.
inline constexpr int gate_group = 8;

/// The column of the gate of result column `column`, in a product with gate and up in such groups.
/// The column of its up is `gate_group` columns behind.
[[nodiscard]] constexpr std::int64_t gate_column(std::int64_t column) noexcept {
  return column / gate_group * 2 * gate_group + column % gate_group;
}

}  // namespace untax

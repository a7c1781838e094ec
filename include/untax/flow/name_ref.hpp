#pragma once

#include <concepts>
#include <cstddef>
#include <string_view>
#include <type_traits>

#include <untax/core/host_device.hpp>

namespace untax {

/// A reference to the name of a wait. It replaces std::string_view, whose functions kernels cannot
/// call. It owns nothing, and the text has to outlive it.
struct name_ref {
  const char* data = nullptr;
  std::size_t size = 0;

  name_ref() = default;
  template <std::size_t N>
  UNTAX_HOST_DEVICE constexpr name_ref(const char (&literal)[N]) noexcept  // NOLINT
      : data(literal), size(N - 1) {}
  template <class Text>
  requires(std::convertible_to<const Text&, std::string_view> && !std::is_array_v<Text>)
      // NOLINTNEXTLINE(google-explicit-constructor): takes the place of std::string_view
      constexpr name_ref(const Text& text) noexcept
      : name_ref(std::string_view(text), 0) {}

  constexpr operator std::string_view() const noexcept {  // NOLINT(google-explicit-constructor)
    return {data, size};
  }

 private:
  constexpr name_ref(std::string_view text, int /*unused*/) noexcept
      : data(text.data()), size(text.size()) {}
};

}  // namespace untax

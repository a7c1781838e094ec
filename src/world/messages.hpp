#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include <untax/core/error.hpp>
#include <untax/flow/control_block.hpp>

namespace untax {

/// A text of limited length inside a message.
template <std::size_t N>
struct message_text {
  std::array<char, N> characters;

  void set(std::string_view text) noexcept {
    characters.fill('\0');
    text.copy(characters.data(), N - 1);
  }
  [[nodiscard]] std::string get() const {
    return {characters.data(), strnlen(characters.data(), N)};
  }
};

/// From every rank to rank 0.
struct greeting {
  static constexpr std::uint64_t expected_magic = 0x756e746178686931;  // "untaxhi1"

  std::uint64_t magic;
  std::int32_t rank;
  std::int32_t world_size;
  message_text<496> introduction;
};

/// From rank 0 to every rank; the segment comes with it if the rank is welcome.
struct answer {
  std::int32_t welcome;
  std::int32_t code;  ///< errc, otherwise
  std::array<std::int32_t, max_ranks> processes;
  message_text<3072> reason;
};

template <class Message>
[[nodiscard]] std::span<const std::byte> bytes_of(const Message& m) noexcept {
  return std::as_bytes(std::span(&m, 1));
}
template <class Message>
[[nodiscard]] std::span<std::byte> writable_bytes_of(Message& m) noexcept {
  return std::as_writable_bytes(std::span(&m, 1));
}

}  // namespace untax

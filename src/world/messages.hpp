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

/// Sent by every other rank to rank 0, with the descriptor of the rank's device memory, if any.
struct greeting {
  static constexpr std::uint64_t expected_magic = 0x756e746178686932;  // "untaxhi2"

  std::uint64_t magic;
  std::int32_t rank;
  std::int32_t world_size;
  std::int32_t trouble;  ///< -1, or an errc: the rank cannot take part, and `text` says why
  std::array<std::uint8_t, 16> device;
  message_text<988> text;  ///< the introduction if there is no trouble
};

/// Sent by rank 0 to every other rank. If the rank is welcome, the descriptor of the segment comes
/// with it, followed by those of the ranks' device memory by rank, if any.
struct answer {
  std::int32_t welcome;
  std::int32_t code;  ///< an errc if the rank is not welcome
  std::array<std::int32_t, max_ranks> processes;
  std::array<std::array<std::uint8_t, 16>, max_ranks> devices;
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

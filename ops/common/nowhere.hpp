#pragma once

#include <cstddef>
#include <cstdint>

#include <untax/symmetric/symmetric.hpp>

// Addresses without memory, to find out which places planned kernels would read and write.

namespace untax::nowhere {

inline constexpr std::int64_t a = std::int64_t{1} << 40;
inline constexpr std::int64_t b = std::int64_t{2} << 40;
inline constexpr std::int64_t c = std::int64_t{3} << 40;
inline constexpr std::int64_t inbox = std::int64_t{4} << 40;
/// The distance between the symmetric memories of neighbouring ranks.
inline constexpr std::int64_t span = std::int64_t{1} << 38;

[[nodiscard]] inline void* pointer(std::int64_t address) {
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));  // NOLINT
}
[[nodiscard]] inline std::int64_t address(const void* data) {
  return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(data));  // NOLINT
}
[[nodiscard]] inline symmetric<std::byte> inbox_of(int rank) {
  return {static_cast<std::byte*>(pointer(inbox + rank * span)), static_cast<std::size_t>(span),
          rank, static_cast<std::size_t>(span)};
}

}  // namespace untax::nowhere

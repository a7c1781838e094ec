#pragma once

#include <cstdint>
#include <string_view>

namespace untax {

/// Where the symmetric heaps of a world lie.
enum class memory_kind : std::uint8_t {
  host,  ///< in the memory of the machine; ranks are threads or processes
  cuda,  ///< in the memory of GPUs, each rank's in that of its own, which reach each other's
  /// A wish, not a place: cuda if every process that a launcher has started here has a GPU of its
  /// own, host otherwise.
  automatic,
};

[[nodiscard]] constexpr std::string_view name_of(memory_kind kind) noexcept {
  constexpr std::string_view names[] = {"host", "cuda", "automatic"};
  return names[static_cast<std::uint8_t>(kind)];
}

}  // namespace untax

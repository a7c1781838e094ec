#pragma once

#include <cstdint>
#include <string_view>

namespace untax {

/// The memory in which the symmetric heaps of a world lie.
enum class memory_kind : std::uint8_t {
  host,  ///< memory of the machine; ranks are threads or processes
  cuda,  ///< memory of GPUs: the heap of a rank is on its GPU, and all GPUs reach each other's
         ///< memory
  /// Asks untax to choose: cuda if every process that a launcher started on this host has a GPU of
  /// its own, host otherwise.
  automatic,
};

/// The name of `kind` in options and messages.
[[nodiscard]] constexpr std::string_view name_of(memory_kind kind) noexcept {
  constexpr std::string_view names[] = {"host", "cuda", "automatic"};
  return names[static_cast<std::uint8_t>(kind)];
}

}  // namespace untax

#pragma once

#include <cstdint>
#include <string_view>

namespace untax {

/// Where the symmetric heaps of a world lie.
enum class memory_kind : std::uint8_t {
  host,  ///< in the memory of the machine; ranks are threads or processes
  cuda,  ///< in the memory of GPUs, one for each rank, which reach each other's
};

[[nodiscard]] constexpr std::string_view name_of(memory_kind kind) noexcept {
  return kind == memory_kind::host ? "host" : "cuda";
}

}  // namespace untax

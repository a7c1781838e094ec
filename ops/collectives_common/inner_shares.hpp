#pragma once

#include <cstdint>

#include <untax/core/host_device.hpp>
#include <untax/tile/shard.hpp>

namespace untax {

/// A cache line begins at every multiple of this many elements, for any type. Transfers that cross
/// lines everywhere take more of a link.
inline constexpr std::int64_t line_elements = 64;

/// Shares that callers do not see, so that they may begin at cache lines.
[[nodiscard]] UNTAX_HOST_DEVICE constexpr sharding inner_shares(std::int64_t count,
                                                                int parts) noexcept {
  return {count, parts, count < 1024 * parts ? 1 : line_elements};
}

}  // namespace untax

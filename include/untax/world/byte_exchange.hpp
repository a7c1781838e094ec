#pragma once

#include <cstddef>
#include <functional>
#include <span>

namespace untax {

/// Gathers bytes from processes that are to become ranks: `mine` is what this one has, and `all` is
/// filled with what all of them have, in rank order, `mine.size()` bytes each. All ranks give
/// equally many.
using byte_exchange =
    std::function<void(std::span<const std::byte> mine, std::span<std::byte> all)>;

}  // namespace untax

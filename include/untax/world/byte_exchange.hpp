#pragma once

#include <cstddef>
#include <functional>
#include <span>

namespace untax {

/// An all-gather of bytes among the processes that are to become ranks. `mine` is the contribution
/// of this process. The function fills `all` with the contributions of all, in rank order,
/// `mine.size()` bytes each. All ranks contribute the same number of bytes. It returns when `all`
/// is complete.
using byte_exchange =
    std::function<void(std::span<const std::byte> mine, std::span<std::byte> all)>;

}  // namespace untax

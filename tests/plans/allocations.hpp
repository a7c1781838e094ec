#pragma once

#include <cstdint>

namespace untax::testing {

/// From here on, and until `counted_allocations`, every `new` of the program counts.
void count_allocations() noexcept;
[[nodiscard]] std::uint64_t counted_allocations() noexcept;

}  // namespace untax::testing

#pragma once

#include <cstdint>

namespace untax {

/// Where the combination of all inputs is wanted.
enum class reduce_target : std::uint8_t { owner, everywhere };

}  // namespace untax

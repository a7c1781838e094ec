#pragma once

#include <cstdint>

namespace untax {

/// The destination of the combination of all inputs.
enum class reduce_target : std::uint8_t { owner, everywhere };

}  // namespace untax

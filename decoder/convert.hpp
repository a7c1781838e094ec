#pragma once

#include <cstdint>

#include <untax/core/types.hpp>

namespace untax {

/// Converts `count` elements through fp32, rounding once. The arrays are equal or apart.
void convert_elements(const void* from, dtype from_type, void* to, dtype to_type,
                      std::int64_t count);

/// Element `i` as fp32.
[[nodiscard]] float element_at(const void* elements, dtype type, std::int64_t i);

/// Writes `value` to element `i`.
void set_element(void* elements, dtype type, std::int64_t i, float value);

}  // namespace untax

#pragma once

#include <string_view>
#include <vector>

#include "ops/common/operator_entry.hpp"

namespace untax {

/// The entries of the GEMM operators of the library, in its order.
[[nodiscard]] const std::vector<operator_entry>& operators();

/// Null if there is none of that name.
[[nodiscard]] const operator_entry* find_operator(std::string_view name);

/// The entry of that name. Throws `invalid_argument` that lists the operators if there is none.
[[nodiscard]] const operator_entry& operator_named(std::string_view name);

}  // namespace untax

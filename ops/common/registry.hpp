#pragma once

#include <string_view>
#include <vector>

#include "ops/common/workload.hpp"

namespace untax {

/// All operators, in the order in which people learn them.
[[nodiscard]] const std::vector<operator_entry>& operators();

/// Null if there is none of that name.
[[nodiscard]] const operator_entry* find_operator(std::string_view name);

/// Throws `invalid_argument` that lists the operators if there is none of that name.
[[nodiscard]] const operator_entry& operator_named(std::string_view name);

// One function an operator, in its own folder.
[[nodiscard]] operator_entry all_gather_gemm_entry();
[[nodiscard]] operator_entry gemm_all_scatter_entry();
[[nodiscard]] operator_entry gemm_reduce_scatter_entry();
[[nodiscard]] operator_entry gemm_all_reduce_entry();

}  // namespace untax

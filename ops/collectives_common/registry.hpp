#pragma once

#include <string_view>
#include <vector>

#include "ops/collectives_common/workload.hpp"

namespace untax {

/// All collectives, in the order in which people learn them.
[[nodiscard]] const std::vector<collective_entry>& collectives();

/// Throws `invalid_argument` if there is none of that name.
[[nodiscard]] const collective_entry& collective_named(std::string_view name);

// One function a collective, in its own folder.
[[nodiscard]] collective_entry all_gather_entry();
[[nodiscard]] collective_entry reduce_scatter_entry();
[[nodiscard]] collective_entry all_reduce_entry();
[[nodiscard]] collective_entry all_to_all_entry();
[[nodiscard]] collective_entry broadcast_entry();

}  // namespace untax

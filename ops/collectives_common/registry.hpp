#pragma once

#include <string_view>
#include <vector>

#include "ops/collectives_common/entry.hpp"

namespace untax {

/// The entries of the collectives of the library, in its order.
[[nodiscard]] const std::vector<collective_entry>& collectives();

/// Throws `invalid_argument` if there is none of that name.
[[nodiscard]] const collective_entry& collective_named(std::string_view name);

}  // namespace untax

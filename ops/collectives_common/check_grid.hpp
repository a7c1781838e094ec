#pragma once

#include <vector>

#include "ops/collectives_common/workload.hpp"
#include "ops/common/protocol_variant.hpp"

namespace untax {

/// Every pattern of a collective, in one phase and in two and with equal and unequal parts where it
/// has these. `entry` has to outlive the variants.
[[nodiscard]] std::vector<protocol_variant> variants_of(const collective_entry& entry);

}  // namespace untax

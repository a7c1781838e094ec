#pragma once

#include <vector>

#include "ops/common/protocol_variant.hpp"
#include "ops/common/workload.hpp"

namespace untax {

/// Every pattern (but `automatic`, which is one of the others), gather axis and direction that a
/// GEMM operator has.
///
/// Schedules are proved for a single element, shapes that no number of ranks divides, and shapes
/// with fewer rows or columns than ranks, each cut into one tile, several, and many, for one worker
/// and for several. `entry` has to outlive the variants.
[[nodiscard]] std::vector<protocol_variant> variants_of(const operator_entry& entry);

}  // namespace untax

#pragma once

#include "engines/sm90/gemm/plan.hpp"

namespace untax {

/// Cycles until the last results of a plan have left, if they leave as tiles are finished: the
/// model. `world` ranks store to each other.
[[nodiscard]] double cycles_until_left(const sm90::gemm_plan& plan, int world);

}  // namespace untax

#pragma once

#include "engines/sm90/gemm/plan.hpp"

namespace untax {

/// Cycles until the last results of a plan have left, if they leave as tiles are finished: the
/// model. `world` ranks store to each other.
[[nodiscard]] double cycles_until_left(const sm90::gemm_plan& plan, int world);

/// The same if so many blocks beside those of the plan send them on.
[[nodiscard]] double cycles_until_moved(const sm90::gemm_plan& plan, int moving, int world);

/// The same if copy engines send what so many GEMMs of this plan store, one after the other, each
/// when it has ended.
[[nodiscard]] double cycles_until_copied(const sm90::gemm_plan& plan, int bands, int world);

}  // namespace untax

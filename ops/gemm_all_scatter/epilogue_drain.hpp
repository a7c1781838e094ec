#pragma once

#include "engines/gpu/gemm/plan.hpp"

namespace untax {

/// Cycles until the last results of a plan have left, if they leave as tiles are finished: the
/// model. `world` ranks store to each other.
[[nodiscard]] double drain_cycles_of_epilogue(const gpu::gemm_plan& plan, int world);

/// The same if so many blocks beside those of the plan send them on.
[[nodiscard]] double drain_cycles_of_senders(const gpu::gemm_plan& plan, int moving, int world);

/// The same if copy engines send what so many GEMMs of this plan store, one after the other, each
/// when it has ended.
[[nodiscard]] double drain_cycles_of_copies(const gpu::gemm_plan& plan, int row_splits, int world);

}  // namespace untax

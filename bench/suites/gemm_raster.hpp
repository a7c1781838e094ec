#pragma once

#include <untax/locality/device.hpp>

#include "bench/suites/gemm.hpp"
#include "engines/gpu/gemm/plan.hpp"

namespace untax::bench {

/// The plan with the raster group for which `untax locality` simulates the least time and, of equal
/// times, the fewest bytes from memory: its tiles are blocks of the kernel `gemm`, in the order in
/// which clusters take them. The given plan if all tiles run at once, or if no raster group is
/// better.
[[nodiscard]] gpu::gemm_plan with_searched_raster(const gpu::gemm_plan& plan,
                                                  const gpu::gemm_shape& shape,
                                                  const locality::device& d);

}  // namespace untax::bench

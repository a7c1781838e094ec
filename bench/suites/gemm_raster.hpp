#pragma once

#include <untax/locality/device.hpp>

#include "bench/suites/gemm.hpp"
#include "engines/gpu/gemm/plan.hpp"

namespace untax::bench {

/// A plan whose bands of tiles are those for which `untax locality` simulates the least time, and
/// of equal times the fewest bytes from memory: its tiles as blocks of the kernel `gemm`, in the
/// order in which clusters take them. The same plan where all tiles run at once, or no band is
/// better.
[[nodiscard]] gpu::gemm_plan with_searched_raster(const gpu::gemm_plan& plan,
                                                  const gpu::gemm_shape& shape,
                                                  const locality::device& d);

}  // namespace untax::bench

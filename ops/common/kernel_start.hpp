#pragma once

#include <untax/ops/options.hpp>
#include <untax/world/world.hpp>

#include "engines/gpu/gemm/config.hpp"
#include "engines/gpu/gemm/launcher.hpp"

namespace untax {

/// How the GEMM of an operator starts. In bulk_synchronous it reads nothing before its phase. If
/// all tiles wait for chunks of A from all ranks, fewer weights are read early.
[[nodiscard]] inline gpu::kernel_start start_of(const world& w, const operator_options& options,
                                                bool wait_for_chunks) {
  gpu::kernel_start start{.early = w.ranks_per_gpu() == 1};
  if (options.constant_weights && options.how != pattern::bulk_synchronous)
    start.stages = wait_for_chunks ? gpu::loaded_before_moving : 6;
  return start;
}

}  // namespace untax

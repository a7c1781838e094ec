#pragma once

#include <cstdint>
#include <memory>

#include <untax/ops/options.hpp>
#include <untax/ops/problems.hpp>
#include <untax/world/world.hpp>

#include "ops/common/device_operator.hpp"

namespace untax {

// gemm_all_scatter in a world of GPUs. The class has refused problems that no pattern can do: fp32,
// and n or k that are not multiples of 8. The C that `run` gets is this rank's; it lies in the
// symmetric heap, at the same offset at all ranks, `between` bytes from one rank to the next.
// Collective; the rank's GPU is the current device. Throws `unsupported` for a pattern that there
// is not, or not here, with the reason, and `out_of_memory`.

/// Every pattern but bulk_library and `automatic`.
[[nodiscard]] std::unique_ptr<device_operator> gemm_all_scatter_on_device(
    world& w, const gemm_all_scatter_problem& problem, const operator_options& options,
    std::int64_t between);

/// bulk_library: cuBLASLt, then NCCL.
[[nodiscard]] std::unique_ptr<device_operator> gemm_all_scatter_by_library(
    world& w, const gemm_all_scatter_problem& problem);

}  // namespace untax

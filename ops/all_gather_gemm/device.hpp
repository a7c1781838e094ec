#pragma once

#include <memory>

#include <untax/ops/options.hpp>
#include <untax/ops/problems.hpp>
#include <untax/world/world.hpp>

#include "ops/common/device_operator.hpp"

namespace untax {

// all_gather_gemm in a world of GPUs. The class has refused problems that no pattern can do: fp32,
// and n or k that are not multiples of 8. Collective; the rank's GPU is the current device. Throws
// `unsupported` for a pattern that there is not, or not here, with the reason, and `out_of_memory`.

/// Every pattern but bulk_library and `automatic`.
[[nodiscard]] std::unique_ptr<device_operator> all_gather_gemm_on_device(
    world& w, const all_gather_gemm_problem& problem, const operator_options& options);

/// bulk_library: NCCL, then cuBLASLt.
[[nodiscard]] std::unique_ptr<device_operator> all_gather_gemm_by_library(
    world& w, const all_gather_gemm_problem& problem);

}  // namespace untax

#pragma once

#include <vector>

#include <untax/ops/options.hpp>

#include "ops/common/device_schedule.hpp"
#include "ops/common/operator_entry.hpp"
#include "ops/common/protocol_variant.hpp"
#include "ops/common/spec.hpp"

namespace untax {

/// The protocols of an operator of the library, each with the problems on which it is checked.
/// Empty for an operator that sends nothing.
[[nodiscard]] std::vector<protocol_variant> variants_of(const operator_spec& operation);

/// Whether the operator has kernels of its own for GPUs, whose plans can be checked.
[[nodiscard]] bool has_gemm_plans(const operator_entry& entry) noexcept;

/// The findings about the plans of all ranks on GPUs with a given number of multiprocessors, for a
/// pattern of own kernels of an operator for which `has_gemm_plans` holds.
[[nodiscard]] device_findings check_gemm_plans(const operator_entry& entry,
                                               const gemm_problem& problem, int ranks,
                                               const operator_options& options,
                                               int multiprocessors);

}  // namespace untax

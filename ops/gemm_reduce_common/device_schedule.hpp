#pragma once

#include <string>
#include <vector>

#include <untax/ops/options.hpp>

#include "ops/common/device_schedule.hpp"
#include "ops/gemm_reduce_common/device_plan.hpp"

namespace untax {

/// Translation validation: all that differs between the fragments that blocks of a rank send, those
/// that owners take, and the elements of C that there are. Nothing if they are the same.
[[nodiscard]] std::vector<std::string> faults_of(const sums_plan& plan);

/// Proves the schedule of all ranks, and adds what it finds. Fragments of a warp go together.
void prove(const device_sum& sum, const std::vector<sums_plan>& ranks, device_findings& found);

/// Plans as ranks with such GPUs do; validates what each would send and take, and proves the
/// schedule of all of them.
[[nodiscard]] device_findings check_on_gpus(const device_sum& sum, int ranks,
                                            const operator_options& options, int multiprocessors);

}  // namespace untax

#pragma once

#include <string>

#include "ops/all_gather_gemm/device_plan.hpp"

namespace untax::plan_check {

/// What is wrong with a gather whose senders send packets: threads that send none of their own,
/// packets that are left out, sent twice, share a place or are not where they are read. Empty if
/// nothing is.
[[nodiscard]] std::string fault_of_packets(const all_gather_gemm_problem& problem,
                                           const gather_plan& plan);

}  // namespace untax::plan_check

#pragma once

#include <untax/ops/options.hpp>

namespace plans_test {

/// Multiprocessors of the GPU that is planned for.
inline constexpr int num_sms = 132;

/// Patterns whose kernels are ours.
inline constexpr untax::pattern own_patterns[] = {
    untax::pattern::bulk_synchronous,       untax::pattern::producer_consumer,
    untax::pattern::fused_sequential,       untax::pattern::fused_specialized,
    untax::pattern::fused_warp_specialized, untax::pattern::copy_engine};

}  // namespace plans_test

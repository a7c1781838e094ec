#pragma once

#include "ops/all_gather_gemm/device_plan.hpp"

namespace untax {

/// How long a gather takes if its GEMM takes `plan.gemm.cycles` alone, in cycles of 1755 MHz: with
/// what its clusters wait for and with what moves beside them. A rank sends `sent_bytes`, to all
/// peers together.
[[nodiscard]] double overlapped_cycles(const gather_plan& plan, double sent_bytes);

}  // namespace untax

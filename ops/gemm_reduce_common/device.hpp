#pragma once

#include <cstdint>
#include <memory>

#include <untax/ops/options.hpp>
#include <untax/world/world.hpp>

#include "engines/gpu/rooms/room_pool.hpp"
#include "ops/common/device_operator.hpp"
#include "ops/gemm_reduce_common/device_plan.hpp"

namespace untax {

// Sums of a GEMM over the ranks of a world of GPUs. Callers have refused problems that no pattern
// can do: fp32 operands, and n or k that are not multiples of 8. Collective; the rank's GPU is the
// current device. Throws `unsupported`, with the reason, for a pattern that does not exist here,
// and `out_of_memory`.

/// This rank's C that peers write. The next rank's C is `between` bytes further.
struct symmetric_result {
  void* data = nullptr;
  std::int64_t between = 0;
};

/// For patterns of own kernels, not `automatic`. If sums are passed on they go to `result`; `run`
/// copies them if it gets another C. `rooms` are those of the operator's other plans; null: it has
/// none.
[[nodiscard]] std::unique_ptr<device_operator> sums_on_device(world& w, const device_sum& sum,
                                                              const operator_options& options,
                                                              const symmetric_result& result,
                                                              gpu::room_pool* rooms);

/// As `sums_on_device`, in a world of one rank, which needs no pattern: it runs the GEMM alone and
/// sends nothing.
[[nodiscard]] std::unique_ptr<device_operator> lonely_sum_on_device(world& w, const device_sum& sum,
                                                                    pattern how);

/// For bulk_library: cuBLASLt, then NCCL. With `varying_rows` it runs any number of rows up to
/// `sum.m`.
[[nodiscard]] std::unique_ptr<device_operator> sums_by_library(world& w, const device_sum& sum,
                                                               bool varying_rows);

class sum_exchange;
/// For bulk_synchronous: cuBLASLt, then `exchange`, which has to serve at least `sum.m` rows.
[[nodiscard]] std::unique_ptr<device_operator> sums_after_library(
    world& w, const device_sum& sum, bool varying_rows, std::shared_ptr<sum_exchange> exchange);

}  // namespace untax

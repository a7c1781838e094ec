#pragma once

#include <cstdint>

#include <untax/core/reduction.hpp>
#include <untax/ops/collective_problems.hpp>

#include "engines/gpu/collectives/collective_kernel.hpp"
#include "engines/gpu/packets/messages.hpp"
#include "ops/collectives_common/reduce_protocol.hpp"

namespace untax {

// The kernels of collectives, for GPUs. Where CUDA is not compiled in these refuse with
// `unsupported`.

/// Data is sent unchanged: all_gather, all_to_all, broadcast in one phase.
[[nodiscard]] gpu::collective_kernel exchange_code(const gpu::message_table& messages, dtype type,
                                                   const collective_plan& plan);
/// Data is combined: reduce_scatter, all_reduce.
[[nodiscard]] gpu::collective_kernel reduction_code(std::int64_t count, dtype type, reduction how,
                                                    reduce_target target,
                                                    const collective_plan& plan);
/// broadcast in two phases.
[[nodiscard]] gpu::collective_kernel relay_code(std::int64_t count, dtype type, int root,
                                                const collective_plan& plan);

}  // namespace untax

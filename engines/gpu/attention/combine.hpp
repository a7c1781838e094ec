#pragma once

#include <untax/core/types.hpp>

namespace untax::gpu {

/// The kernels around that of attention, which take an attention_arguments.
inline constexpr int combine_threads = 128;

/// Combines the partial results of all ranks, which lie in `rows`, one rank behind the other.
[[nodiscard]] const void* combine_kernel(dtype type, dtype partials);
/// Sends partial results as they come to the outbox, and combines what arrives. Has as many blocks
/// as the kernel of attention.
[[nodiscard]] const void* exchange_kernel(dtype type, dtype partials);

}  // namespace untax::gpu

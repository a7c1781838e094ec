#pragma once

#include <untax/core/types.hpp>

namespace untax::gpu {

/// The kernels beside and after the attention kernel, which take an attention_arguments.
inline constexpr int combine_threads = 128;

/// Combines the partial results of all ranks, which lie in `rows`, one rank after the other.
[[nodiscard]] const void* combine_kernel(dtype type, dtype partials);
/// Sends partial results as they arrive in the outbox, and combines those that arrive from all
/// ranks. Has as many blocks as the attention kernel.
[[nodiscard]] const void* exchange_kernel(dtype type, dtype partials);

}  // namespace untax::gpu

#pragma once

#include <untax/core/types.hpp>

namespace untax::gpu {

/// Threads per block of the kernels below. Both kernels take an attention_arguments.
inline constexpr int combine_threads = 128;

/// Combines the partial results of all ranks. `rows` must hold them, ordered by rank.
[[nodiscard]] const void* combine_kernel(dtype type, dtype partials);
/// Sends each row of partial results once it is in the outbox, and combines the rows of all ranks.
/// Must be launched with as many blocks as the attention kernel.
[[nodiscard]] const void* exchange_kernel(dtype type, dtype partials);

}  // namespace untax::gpu

#pragma once

#include <cstdint>

#include <cuda_runtime.h>

#include <untax/core/types.hpp>

namespace untax::bench {

/// N(0, 1), different for each seed.
void fill_normal(void* to, std::int64_t count, dtype type, std::uint32_t seed, cudaStream_t stream);

/// |a - b| / |b| in the Frobenius norm; infinity if an element is no number. Waits.
[[nodiscard]] double relative_difference(const void* a, const void* b, std::int64_t count,
                                         dtype type, cudaStream_t stream);

}  // namespace untax::bench

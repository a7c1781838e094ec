#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace untax::gpu {

/// Nanoseconds of the host's monotonic clock less those of %globaltimer of the current device, from
/// the quickest of several tries; exact to a few microseconds.
[[nodiscard]] cudaError_t measure_clock_offset(cudaStream_t stream, std::int64_t& offset);

}  // namespace untax::gpu

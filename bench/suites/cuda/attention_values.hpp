#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include <untax/ops/flash_decode.hpp>

namespace untax::bench {

/// The part of one rank of row `row` of the result, by a plain kernel in fp32: `to` gets head_dim
/// sums of exponentials times values, the sum of exponentials, and the maximum logit (natural).
/// `scratch` has a float for each key. bf16, without pages or cap.
void attend_plainly(const flash_decode_problem& problem, const void* q, const void* keys,
                    const void* values, std::int64_t row, float* scratch, float* to,
                    cudaStream_t stream);

}  // namespace untax::bench

#pragma once

#include <cstdint>

#include <cuda_runtime.h>

namespace untax::bench {

/// x = sum + residual, out = x / rms(x) * weight, in bf16: the kernel after an all-reduce if
/// nothing is fused. sum, residual, x, out: [rows, hidden]; weight: [hidden]; hidden is a multiple
/// of 8, at most 16384. One block for each row.
void add_and_normalise(const void* sum, const void* residual, const void* weight, void* x,
                       void* out, std::int64_t rows, std::int64_t hidden, float epsilon,
                       cudaStream_t stream);

/// sums += addend, whose elements are bf16.
void add_to(float* sums, const void* addend, std::int64_t count, cudaStream_t stream);

/// out = x / rms(x) * weight, computed in fp64: a reference. x, out: [rows, hidden] of fp32;
/// weight: [hidden] of bf16.
void normalise_in_fp64(const float* x, const void* weight, float* out, std::int64_t rows,
                       std::int64_t hidden, float epsilon, cudaStream_t stream);

}  // namespace untax::bench

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cmath>

#include "bench/suites/cuda/attention_values.hpp"
#include "src/symmetric/cuda/driver.hpp"

namespace untax::bench {
namespace {

constexpr int threads = 256;
constexpr int blocks = 528;

/// The place and shape of the keys of a row of the result.
struct plain_shape {
  std::int64_t first = 0;   // element of key 0
  std::int64_t stride = 0;  // between keys
  std::int64_t keys = 0;
  int width = 0;
  float scale = 0;
};

__global__ void logits_of(plain_shape shape, const __nv_bfloat16* q, const __nv_bfloat16* keys,
                          float* to) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x / 32;
  for (std::int64_t i = (blockIdx.x * blockDim.x + threadIdx.x) / 32; i < shape.keys; i += step) {
    float sum = 0;
    for (int j = lane; j < shape.width; j += 32)
      sum += __bfloat162float(q[j]) * __bfloat162float(keys[shape.first + i * shape.stride + j]);
    for (int away = 16; away > 0; away /= 2) sum += __shfl_xor_sync(0xffffffffU, sum, away);
    if (lane == 0) to[i] = sum * shape.scale;
  }
}

__global__ void most_of(const float* logits, std::int64_t count, float* to) {
  __shared__ float most[threads];
  float mine = -INFINITY;
  for (std::int64_t i = threadIdx.x; i < count; i += threads) mine = fmaxf(mine, logits[i]);
  most[threadIdx.x] = mine;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int i = 1; i < threads; ++i) mine = fmaxf(mine, most[i]);
  *to = mine;
}

/// One thread for each column; blocks divide the keys.
__global__ void sums_of(plain_shape shape, const float* logits, const __nv_bfloat16* values,
                        float* to) {
  const float most = to[shape.width + 1];
  const int j = static_cast<int>(threadIdx.x);
  float sum = 0;
  float total = 0;
  for (std::int64_t i = blockIdx.x; i < shape.keys; i += gridDim.x) {
    const float weight = expf(logits[i] - most);
    total += weight;
    sum += weight * __bfloat162float(values[shape.first + i * shape.stride + j]);
  }
  atomicAdd(to + j, sum);
  if (j == 0) atomicAdd(to + shape.width, total);
}

}  // namespace

void attend_plainly(const flash_decode_problem& p, const void* q, const void* keys,
                    const void* values, std::int64_t row, float* scratch, float* to,
                    cudaStream_t stream) {
  const std::int64_t stride = p.kv_heads * p.head_dim;
  const std::int64_t sequence = row / p.heads;
  const std::int64_t head = row % p.heads / (p.heads / p.kv_heads);
  const plain_shape shape{sequence * p.keys * stride + head * p.head_dim, stride, p.keys,
                          static_cast<int>(p.head_dim),
                          1 / std::sqrt(static_cast<float>(p.head_dim))};
  const auto width = static_cast<std::size_t>(p.head_dim);
  gpu::require(cudaMemsetAsync(to, 0, (width + 2) * sizeof(float), stream), "clearing sums");
  logits_of<<<blocks, threads, 0, stream>>>(shape,
                                            static_cast<const __nv_bfloat16*>(q) + row * p.head_dim,
                                            static_cast<const __nv_bfloat16*>(keys), scratch);
  most_of<<<1, threads, 0, stream>>>(scratch, p.keys, to + width + 1);
  sums_of<<<blocks, static_cast<unsigned>(width), 0, stream>>>(
      shape, scratch, static_cast<const __nv_bfloat16*>(values), to);
  gpu::require(cudaGetLastError(), "a plain kernel");
}

}  // namespace untax::bench

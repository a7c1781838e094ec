#include "bench/suites/cuda/add_and_normalise.cuh"

#include <cuda_bf16.h>

#include "src/symmetric/cuda/driver.hpp"

namespace untax::bench {
namespace {

constexpr int threads = 512;
constexpr int width = 8;                       // elements of a load
constexpr int most = 16384 / width / threads;  // loads of a thread

/// Eight elements in four registers.
struct eight {
  __nv_bfloat162 pairs[width / 2];
};

__device__ eight load(const void* row, int i) {
  const uint4 bits = static_cast<const uint4*>(row)[i];
  return reinterpret_cast<const eight&>(bits);
}

__device__ float sum_over_block(float mine) {
  __shared__ float of_warp[threads / 32];
  for (int step = 16; step > 0; step /= 2) mine += __shfl_xor_sync(0xffffffffU, mine, step);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = mine;
  __syncthreads();
  float all = 0;
  for (const float one : of_warp) all += one;
  return all;
}

__global__ void __launch_bounds__(threads)
    kernel(const uint4* sum, const uint4* residual, const uint4* weight, uint4* x, uint4* out,
           int chunks, float epsilon) {
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.x) * chunks;
  eight kept[most];
  float squares = 0;
#pragma unroll
  for (int k = 0; k < most; ++k) {
    const int i = static_cast<int>(threadIdx.x) + k * threads;
    if (i >= chunks) break;
    const eight a = load(sum + begin, i);
    const eight b = load(residual + begin, i);
#pragma unroll
    for (int p = 0; p < width / 2; ++p) {
      const float2 left = __bfloat1622float2(a.pairs[p]);
      const float2 right = __bfloat1622float2(b.pairs[p]);
      kept[k].pairs[p] = __floats2bfloat162_rn(left.x + right.x, left.y + right.y);
      const float2 rounded = __bfloat1622float2(kept[k].pairs[p]);
      squares += rounded.x * rounded.x + rounded.y * rounded.y;
    }
    x[begin + i] = reinterpret_cast<const uint4&>(kept[k]);
  }
  const float inverse =
      rsqrtf(sum_over_block(squares) / static_cast<float>(chunks * width) + epsilon);
#pragma unroll
  for (int k = 0; k < most; ++k) {
    const int i = static_cast<int>(threadIdx.x) + k * threads;
    if (i >= chunks) break;
    const eight by = load(weight, i);
    eight normed;
#pragma unroll
    for (int p = 0; p < width / 2; ++p) {
      const float2 value = __bfloat1622float2(kept[k].pairs[p]);
      const float2 scale = __bfloat1622float2(by.pairs[p]);
      normed.pairs[p] =
          __floats2bfloat162_rn(value.x * inverse * scale.x, value.y * inverse * scale.y);
    }
    out[begin + i] = reinterpret_cast<const uint4&>(normed);
  }
}

__global__ void add(float* sums, const __nv_bfloat16* addend, std::int64_t count) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step)
    sums[i] += __bfloat162float(addend[i]);
}

/// One block for each row.
__global__ void normalise(const float* x, const __nv_bfloat16* weight, float* out,
                          std::int64_t hidden, double epsilon) {
  __shared__ double squares;
  if (threadIdx.x == 0) squares = 0;
  __syncthreads();
  const std::int64_t begin = blockIdx.x * hidden;
  double mine = 0;
  for (std::int64_t i = threadIdx.x; i < hidden; i += blockDim.x)
    mine += static_cast<double>(x[begin + i]) * x[begin + i];
  atomicAdd(&squares, mine);
  __syncthreads();
  const double inverse = 1 / sqrt(squares / static_cast<double>(hidden) + epsilon);
  for (std::int64_t i = threadIdx.x; i < hidden; i += blockDim.x)
    out[begin + i] = static_cast<float>(x[begin + i] * inverse * __bfloat162float(weight[i]));
}

}  // namespace

void add_to(float* sums, const void* addend, std::int64_t count, cudaStream_t stream) {
  constexpr unsigned blocks = 1024;
  add<<<blocks, threads, 0, stream>>>(sums, static_cast<const __nv_bfloat16*>(addend), count);
  gpu::require(cudaGetLastError(), "adding");
}

void normalise_in_fp64(const float* x, const void* weight, float* out, std::int64_t rows,
                       std::int64_t hidden, float epsilon, cudaStream_t stream) {
  if (rows == 0) return;
  normalise<<<static_cast<unsigned>(rows), threads, 0, stream>>>(
      x, static_cast<const __nv_bfloat16*>(weight), out, hidden, static_cast<double>(epsilon));
  gpu::require(cudaGetLastError(), "normalising");
}

void add_and_normalise(const void* sum, const void* residual, const void* weight, void* x,
                       void* out, std::int64_t rows, std::int64_t hidden, float epsilon,
                       cudaStream_t stream) {
  if (rows == 0) return;
  kernel<<<static_cast<unsigned>(rows), threads, 0, stream>>>(
      static_cast<const uint4*>(sum), static_cast<const uint4*>(residual),
      static_cast<const uint4*>(weight), static_cast<uint4*>(x), static_cast<uint4*>(out),
      static_cast<int>(hidden / width), epsilon);
  gpu::require(cudaGetLastError(), "adding and normalising");
}

}  // namespace untax::bench

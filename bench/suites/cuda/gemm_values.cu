#include "bench/suites/cuda/gemm_values.cuh"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>
#include <limits>

#include "bench/suites/cuda/gpu_team.cuh"
#include "bench/suites/cuda/vectors.cuh"

namespace untax::bench {
namespace {

constexpr int threads = 256;
constexpr int blocks = 1056;

__device__ std::uint32_t mixed(std::uint32_t x) {
  x = (x ^ (x >> 16U)) * 0x7feb352dU;
  x = (x ^ (x >> 15U)) * 0x846ca68bU;
  return x ^ (x >> 16U);
}

template <class T>
__global__ void fill(T* to, std::int64_t count, std::uint32_t seed) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += step) {
    const std::uint32_t one = mixed(static_cast<std::uint32_t>(i) ^ mixed(seed));
    const std::uint32_t two = mixed(one + 0x9e3779b9U);
    // Box and Muller; never the logarithm of 0.
    const float u = (static_cast<float>(one >> 8U) + 0.5F) / 16777216.F;
    const float v = static_cast<float>(two >> 8U) / 16777216.F;
    to[i] = static_cast<T>(sqrtf(-2.F * logf(u)) * cospif(2.F * v));
  }
}

/// Sums of squares, of the differences and of b, and how many elements are no numbers.
struct norms {
  double difference;
  double size;
  unsigned long long broken;
};

template <class T>
__global__ void compare(const T* a, const T* b, std::int64_t count, norms* found) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  double difference = 0;
  double size = 0;
  unsigned long long broken = 0;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += step) {
    const float should = static_cast<float>(b[i]);
    const float d = static_cast<float>(a[i]) - should;
    broken += isfinite(d) ? 0 : 1;
    difference += static_cast<double>(d) * d;
    size += static_cast<double>(should) * should;
  }
  atomicAdd(&found->difference, difference);
  atomicAdd(&found->size, size);
  if (broken > 0) atomicAdd(&found->broken, broken);
}

}  // namespace

void fill_normal(void* to, std::int64_t count, dtype type, std::uint32_t seed,
                 cudaStream_t stream) {
  if (type == dtype::f16) {
    fill<<<blocks, threads, 0, stream>>>(static_cast<__half*>(to), count, seed);
  } else {
    fill<<<blocks, threads, 0, stream>>>(static_cast<__nv_bfloat16*>(to), count, seed);
  }
  check_cuda(cudaGetLastError(), "filling matrices");
}

double relative_difference(const void* a, const void* b, std::int64_t count, dtype type,
                           cudaStream_t stream) {
  const device_buffer memory(sizeof(norms));
  auto* sums = static_cast<norms*>(memory.data());
  norms found{};
  check_cuda(cudaMemsetAsync(sums, 0, sizeof found, stream), "comparing matrices");
  if (type == dtype::f16) {
    compare<<<blocks, threads, 0, stream>>>(static_cast<const __half*>(a),
                                            static_cast<const __half*>(b), count, sums);
  } else {
    compare<<<blocks, threads, 0, stream>>>(static_cast<const __nv_bfloat16*>(a),
                                            static_cast<const __nv_bfloat16*>(b), count, sums);
  }
  check_cuda(cudaMemcpyAsync(&found, sums, sizeof found, cudaMemcpyDeviceToHost, stream),
             "comparing matrices");
  check_cuda(cudaStreamSynchronize(stream), "comparing matrices");
  if (found.broken > 0) return std::numeric_limits<double>::infinity();
  return std::sqrt(found.difference / found.size);
}

}  // namespace untax::bench

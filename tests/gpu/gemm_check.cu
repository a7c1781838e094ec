#include "gemm_check.cuh"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "gpus.hpp"
#include "ops/common/deviation.hpp"

namespace gpu_test {
namespace {

constexpr std::int64_t margin = 1024;  // elements
constexpr int grid = 1024;
constexpr std::uint16_t poison_word = 0xffff;  // NaN in both types

__device__ std::uint32_t mixed(std::uint32_t x) {
  x = (x ^ (x >> 16U)) * 0x7feb352dU;
  x = (x ^ (x >> 15U)) * 0x846ca68bU;
  return x ^ (x >> 16U);
}

template <class T>
__global__ void fill_normal(T* to, std::int64_t count, std::uint32_t seed) {
  for (std::int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
       i += gridDim.x * blockDim.x) {
    const std::uint32_t one = mixed(static_cast<std::uint32_t>(i) * 2 + seed);
    const std::uint32_t two = mixed(one + 0x9e3779b9U + static_cast<std::uint32_t>(i >> 31));
    const float u = (static_cast<float>(one >> 8U) + 0.5F) / 16777216.F;
    const float v = static_cast<float>(two >> 8U) / 16777216.F;
    to[i] = static_cast<T>(sqrtf(-2.F * logf(u)) * cospif(2.F * v));
  }
}

template <class T>
__global__ void multiply_plainly(float* c, const T* a, const T* b, int m, int n, int k) {
  __shared__ float left[32][33];
  __shared__ float right[32][33];
  const int row = static_cast<int>(blockIdx.y) * 32;
  const int column = static_cast<int>(blockIdx.x) * 32;
  const int x = static_cast<int>(threadIdx.x);
  const int y = static_cast<int>(threadIdx.y);
  double sums[4] = {};
  for (int depth = 0; depth < k; depth += 32) {
    for (int r = y; r < 32; r += 8) {
      const bool inside = depth + x < k;
      left[r][x] = inside && row + r < m
                       ? static_cast<float>(a[static_cast<std::int64_t>(row + r) * k + depth + x])
                       : 0.F;
      right[r][x] =
          inside && column + r < n
              ? static_cast<float>(b[static_cast<std::int64_t>(column + r) * k + depth + x])
              : 0.F;
    }
    __syncthreads();
    for (int d = 0; d < 32; ++d) {
      for (int i = 0; i < 4; ++i)
        sums[i] += static_cast<double>(left[y + 8 * i][d]) * static_cast<double>(right[x][d]);
    }
    __syncthreads();
  }
  for (int i = 0; i < 4; ++i) {
    if (row + y + 8 * i < m && column + x < n)
      c[static_cast<std::int64_t>(row + y + 8 * i) * n + column + x] = static_cast<float>(sums[i]);
  }
}

__global__ void fill_words(std::uint16_t* to, std::int64_t count) {
  for (std::int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
       i += gridDim.x * blockDim.x)
    to[i] = poison_word;
}

}  // namespace

/// The result of a comparison.
struct gemm_report {
  double difference;  // sums of squares
  double size;
  unsigned long long wrong;
  unsigned long long first;
  unsigned long long outside;
  unsigned blocks[8][8];  // wrong elements by their place in squares of 64 x 64, in eighths
};

namespace {

template <class T>
__global__ void compare(const T* c, const float* expected, std::int64_t count, std::int64_t n,
                        float share, float usual, gemm_report* found) {
  double difference = 0;
  double size = 0;
  for (std::int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
       i += gridDim.x * blockDim.x) {
    const float is = static_cast<float>(c[i]);
    const float should = expected[i];
    size += static_cast<double>(should) * should;
    const float d = is - should;
    if (isfinite(d)) difference += static_cast<double>(d) * d;
    if (fabsf(d) <= share * fmaxf(usual, fabsf(should))) continue;  // not so for NaN
    atomicAdd(&found->wrong, 1ULL);
    atomicMin(&found->first, static_cast<unsigned long long>(i));
    atomicAdd(&found->blocks[i / n % 64 / 8][i % n % 64 / 8], 1U);
  }
  atomicAdd(&found->difference, difference);
  atomicAdd(&found->size, size);
}

__global__ void look_around(const std::uint16_t* around, std::int64_t count, gemm_report* found) {
  const std::int64_t i = threadIdx.x;
  if (around[i] != poison_word || around[margin + count + i] != poison_word)
    atomicAdd(&found->outside, 1ULL);
}

}  // namespace

gemm_data::gemm_data(std::int64_t m, std::int64_t n, std::int64_t k, untax::dtype type)
    : m_(m), n_(n), k_(k), type_(type) {
  const auto bytes = [](std::int64_t count, std::size_t each) {
    return static_cast<std::size_t>(count) * each;
  };
  ok(cudaMalloc(&a_, bytes(m * k, 2)));
  ok(cudaMalloc(&b_, bytes(n * k, 2)));
  ok(cudaMalloc(&around_, bytes(m * n + 2 * margin, 2)));
  c_ = around_ + margin;
  ok(cudaMalloc(&expected_, bytes(m * n, 4)));
  ok(cudaMalloc(&report_, sizeof(gemm_report)));
}

gemm_data::~gemm_data() {
  for (void* p : {a_, b_, static_cast<void*>(around_), static_cast<void*>(expected_),
                  static_cast<void*>(report_)})
    cudaFree(p);
}

void gemm_data::fill(std::uint32_t seed, cudaStream_t stream) {
  const auto with = [&]<class T>(T* a, T* b) {
    fill_normal<<<grid, 256, 0, stream>>>(a, m_ * k_, seed * 2654435761U);
    fill_normal<<<grid, 256, 0, stream>>>(b, n_ * k_, seed * 2654435761U + 77777U);
    const dim3 tiles(static_cast<unsigned>((n_ + 31) / 32), static_cast<unsigned>((m_ + 31) / 32));
    multiply_plainly<<<tiles, dim3(32, 8), 0, stream>>>(expected_, a, b, static_cast<int>(m_),
                                                        static_cast<int>(n_), static_cast<int>(k_));
  };
  if (type_ == untax::dtype::f16) {
    with(static_cast<__half*>(a_), static_cast<__half*>(b_));
  } else {
    with(static_cast<__nv_bfloat16*>(a_), static_cast<__nv_bfloat16*>(b_));
  }
  ok(cudaGetLastError());
}

void gemm_data::poison(cudaStream_t stream) {
  fill_words<<<grid, 256, 0, stream>>>(around_, m_ * n_ + 2 * margin);
  ok(cudaGetLastError());
}

std::string gemm_data::findings(cudaStream_t stream) {
  gemm_report found{};
  found.first = ~0ULL;
  ok(cudaMemcpyAsync(report_, &found, sizeof found, cudaMemcpyHostToDevice, stream));
  const std::int64_t count = m_ * n_;
  // Elements are added in fp32 and rounded once; sums of k products have a root mean square of
  // sqrt(k).
  const auto share = static_cast<float>(untax::roundoff_of(type_) + untax::addition_share(k_));
  const auto usual = std::sqrt(static_cast<float>(k_));
  if (type_ == untax::dtype::f16) {
    compare<<<grid, 256, 0, stream>>>(reinterpret_cast<const __half*>(c_), expected_, count, n_,
                                      share, usual, report_);
  } else {
    compare<<<grid, 256, 0, stream>>>(reinterpret_cast<const __nv_bfloat16*>(c_), expected_, count,
                                      n_, share, usual, report_);
  }
  look_around<<<1, margin, 0, stream>>>(around_, count, report_);
  ok(cudaMemcpyAsync(&found, report_, sizeof found, cudaMemcpyDeviceToHost, stream));
  ok(cudaStreamSynchronize(stream));
  std::string text;
  if (found.outside > 0) text += fmt::format("{} elements outside of C written; ", found.outside);
  const double error = std::sqrt(found.difference / found.size);
  if (error >= 1e-2) text += fmt::format("relative error {:.4f}; ", error);
  if (found.wrong == 0) return text;
  const auto first = static_cast<std::int64_t>(found.first);
  std::uint16_t is = 0;
  float should = 0;
  ok(cudaMemcpy(&is, c_ + first, sizeof is, cudaMemcpyDeviceToHost));
  ok(cudaMemcpy(&should, expected_ + first, sizeof should, cudaMemcpyDeviceToHost));
  __nv_bfloat16_raw brain{is};
  __half_raw half{is};
  text += fmt::format("{} of {} wrong, first at row {} column {}: {} instead of {}", found.wrong,
                      count, first / n_, first % n_,
                      type_ == untax::dtype::f16 ? __half2float(half) : __bfloat162float(brain),
                      should);
  text += "\nby place in squares of 64 x 64, in eighths:";
  for (const auto& row : found.blocks) {
    text += "\n ";
    for (const unsigned wrong : row) text += fmt::format(" {:7}", wrong);
  }
  return text;
}

}  // namespace gpu_test

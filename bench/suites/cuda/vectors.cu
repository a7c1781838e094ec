#include "bench/suites/cuda/vectors.cuh"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <utility>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "src/symmetric/cuda/driver.hpp"

namespace untax::bench {
namespace {

constexpr int threads = 512;
constexpr int blocks = 264;

__device__ float exact_number(std::int64_t i, std::uint32_t seed) {
  std::uint32_t mixed = (static_cast<std::uint32_t>(i) ^ seed) * 2654435761U;
  mixed = (mixed ^ mixed >> 15) * 2246822519U;
  return static_cast<float>(static_cast<int>(mixed >> 16) % 9 - 4);
}

template <class T>
__global__ void fill(T* to, std::int64_t count, std::uint32_t seed) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step)
    to[i] = static_cast<T>(exact_number(i, seed));
}

__global__ void compare(const std::uint16_t* a, const std::uint16_t* b, std::size_t words,
                        unsigned long long* differences) {
  const std::size_t step = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  unsigned long long mine = 0;
  for (std::size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < words; i += step)
    mine += a[i] != b[i] ? 1 : 0;
  if (mine > 0) atomicAdd(differences, mine);
}

}  // namespace

std::string device_name(std::string_view suite) {
  int device = 0;
  cudaDeviceProp found{};
  if (cudaGetDevice(&device) != cudaSuccess ||
      cudaGetDeviceProperties(&found, device) != cudaSuccess) {
    cudaGetLastError();
    throw error(errc::unsupported, fmt::format("bench {} needs a GPU, and there is none", suite));
  }
  return found.name;
}

device_buffer::device_buffer(std::size_t bytes) {
  gpu::require(cudaMalloc(&data_, bytes == 0 ? 1 : bytes), "allocating device memory");
}
device_buffer::device_buffer(device_buffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)) {}
device_buffer& device_buffer::operator=(device_buffer&& other) noexcept {
  std::swap(data_, other.data_);
  return *this;
}
device_buffer::~device_buffer() { cudaFree(data_); }

void fill_exact(void* to, std::int64_t count, dtype type, std::uint32_t seed, cudaStream_t stream) {
  switch (type) {
    case dtype::f32:
      fill<<<blocks, threads, 0, stream>>>(static_cast<float*>(to), count, seed);
      break;
    case dtype::f16:
      fill<<<blocks, threads, 0, stream>>>(static_cast<__half*>(to), count, seed);
      break;
    case dtype::bf16:
      fill<<<blocks, threads, 0, stream>>>(static_cast<__nv_bfloat16*>(to), count, seed);
      break;
  }
  gpu::require(cudaGetLastError(), "filling a vector");
}

void count_differences(const void* a, const void* b, std::size_t bytes,
                       unsigned long long* differences, cudaStream_t stream) {
  compare<<<blocks, threads, 0, stream>>>(static_cast<const std::uint16_t*>(a),
                                          static_cast<const std::uint16_t*>(b), bytes / 2,
                                          differences);
  gpu::require(cudaGetLastError(), "comparing vectors");
}

}  // namespace untax::bench

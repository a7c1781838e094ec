#include "engines/gpu/activation/activation.hpp"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>

#include <untax/core/error.hpp>

#include "engines/gpu/launch/this_gpu.hpp"
#include "engines/gpu/matrix/activation_function.cuh"
#include "engines/gpu/norm/elements.cuh"
#include "engines/gpu/sm90/ptx/cluster.cuh"
#include "src/symmetric/cuda/launching.hpp"

namespace untax::gpu {
namespace {

constexpr int threads = 256;
constexpr int elements = norm_rows::elements;  // which a thread reads and writes at once
static_assert(elements == gate_group);

struct activation_arguments {
  activated_rows how;
  const uint4* product;
  const uint4* bias;
  uint4* out;
};

/// Each thread makes groups of eight results.
template <class T>
__global__ void __launch_bounds__(threads) activate_rows(activation_arguments given) {
  griddepcontrol_launch_dependents();
  const bool gated = is_gated(given.how.function);
  const std::int64_t across = given.how.n / elements;  // groups of a row
  const std::int64_t groups = given.how.rows * across;
  const std::int64_t step = std::int64_t{gridDim.x} * threads;
  griddepcontrol_wait();
  for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < groups; i += step) {
    const std::int64_t from = gated ? 2 * i : i;
    eight<T> x = eight<T>::of(given.product[from]);
    const std::int64_t column = i % across * (gated ? 2 : 1);
    if (given.bias != nullptr) x.add(eight<T>::of(given.bias[column]));
#pragma unroll
    for (float& value : x.v) value = function_of(given.how.function, value);
    if (gated) {
      eight<T> up = eight<T>::of(given.product[from + 1]);
      if (given.bias != nullptr) up.add(eight<T>::of(given.bias[column + 1]));
#pragma unroll
      for (int e = 0; e < elements; ++e) x.v[e] *= up.v[e];
    }
    given.out[i] = x.pairs();
  }
}

auto kernel_of(dtype type) {
  return type == dtype::f16 ? &activate_rows<__half> : &activate_rows<__nv_bfloat16>;
}

}  // namespace

void load_activation_kernels() {
  for (const dtype type : {dtype::bf16, dtype::f16}) {
    load_kernel(reinterpret_cast<const void*>(kernel_of(type)),
                "cannot load a kernel of activations");
  }
}

void activate(const activated_rows& how, const void* product, const void* bias, void* out,
              stream_ref stream) {
  constexpr std::int64_t blocks_of_sm = 8;  // blocks that fit on an SM
  const std::int64_t groups = how.rows * how.n / elements;
  const std::int64_t most = blocks_of_sm * num_sms_here();
  const auto blocks =
      static_cast<int>(std::clamp<std::int64_t>((groups + threads - 1) / threads, 1, most));
  start_pdl(how.starts_early, kernel_of(how.type), blocks, threads,
            static_cast<cudaStream_t>(stream.handle), "cannot start a kernel of activations",
            {how, static_cast<const uint4*>(product), static_cast<const uint4*>(bias),
             static_cast<uint4*>(out)});
}

}  // namespace untax::gpu

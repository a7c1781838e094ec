#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <type_traits>

#include "src/symmetric/cuda/driver.hpp"

namespace untax::gpu {

namespace detail {

template <class... Parameters>
void start(const cudaLaunchAttribute& how, void (*kernel)(Parameters...), int blocks, int threads,
           std::size_t shared_bytes, cudaStream_t stream, const char* failure,
           const std::type_identity_t<Parameters>&... parameters) {
  cudaLaunchAttribute attribute = how;
  cudaLaunchConfig_t launch{};
  launch.gridDim = dim3(static_cast<unsigned>(blocks));
  launch.blockDim = dim3(static_cast<unsigned>(threads));
  launch.dynamicSmemBytes = shared_bytes;
  launch.stream = stream;
  launch.attrs = &attribute;
  launch.numAttrs = 1;
  void* pointers[] = {const_cast<void*>(static_cast<const void*>(&parameters))...};
  require(cudaLaunchKernelExC(&launch, reinterpret_cast<const void*>(kernel), pointers), failure);
}

}  // namespace detail

/// Starts a kernel that takes its places as the kernel before it in the stream leaves them, unless
/// `early` is false. It has to wait for the end of that one itself, before it touches anything.
/// Throws `internal` with `failure`.
template <class... Parameters>
void start_early(bool early, void (*kernel)(Parameters...), int blocks, int threads,
                 cudaStream_t stream, const char* failure,
                 const std::type_identity_t<Parameters>&... parameters) {
  cudaLaunchAttribute how{};
  how.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  how.val.programmaticStreamSerializationAllowed = early ? 1 : 0;
  detail::start(how, kernel, blocks, threads, 0, stream, failure, parameters...);
}

/// Starts a kernel whose blocks, an even number, take `shared_bytes` each, beside a GEMM: in pairs,
/// as multiprocessors come, since one that is left alone has no room for a cluster. Throws
/// `internal` with `failure`.
template <class... Parameters>
void start_in_pairs(void (*kernel)(Parameters...), int blocks, int threads, int shared_bytes,
                    cudaStream_t stream, const char* failure,
                    const std::type_identity_t<Parameters>&... parameters) {
  require(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                               cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes),
          "there is not enough shared memory for a kernel that moves");
  cudaLaunchAttribute pairs{};
  pairs.id = cudaLaunchAttributeClusterDimension;
  pairs.val.clusterDim = {2, 1, 1};
  detail::start(pairs, kernel, blocks, threads, static_cast<std::size_t>(shared_bytes), stream,
                failure, parameters...);
}

/// Lays a multiprocessor out as kernels need it that take all shared memory. Otherwise it is laid
/// out anew between this kernel and such a one, for which it has to be empty.
template <class... Parameters>
void prefer_shared_memory(void (*kernel)(Parameters...)) {
  require(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                               cudaFuncAttributePreferredSharedMemoryCarveout,
                               cudaSharedmemCarveoutMaxShared),
          "cannot say how a kernel shares memory out");
}

}  // namespace untax::gpu

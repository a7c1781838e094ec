#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <type_traits>

#include "src/symmetric/cuda/driver.hpp"

namespace untax::gpu {

/// So many blocks of so many threads, with nothing special about how they start.
[[nodiscard]] inline cudaLaunchConfig_t launch_of(int blocks, int threads, std::size_t shared_bytes,
                                                  cudaStream_t stream) {
  cudaLaunchConfig_t launch{};
  launch.gridDim = dim3(static_cast<unsigned>(blocks));
  launch.blockDim = dim3(static_cast<unsigned>(threads));
  launch.dynamicSmemBytes = shared_bytes;
  launch.stream = stream;
  return launch;
}
/// Whether a kernel takes its places as the one before it in the stream leaves them.
[[nodiscard]] inline cudaLaunchAttribute starting_early(bool early) {
  cudaLaunchAttribute how{};
  how.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  how.val.programmaticStreamSerializationAllowed = early ? 1 : 0;
  return how;
}
/// Clusters of so many blocks.
[[nodiscard]] inline cudaLaunchAttribute in_clusters(int blocks) {
  cudaLaunchAttribute how{};
  how.id = cudaLaunchAttributeClusterDimension;
  how.val.clusterDim = {static_cast<unsigned>(blocks), 1, 1};
  return how;
}

namespace detail {

template <class... Parameters>
void start(cudaLaunchAttribute how, void (*kernel)(Parameters...), int blocks, int threads,
           int shared_bytes, cudaStream_t stream, const char* failure,
           const std::type_identity_t<Parameters>&... parameters) {
  const auto* const code = reinterpret_cast<const void*>(kernel);
  if (shared_bytes > 0) {
    require(cudaFuncSetAttribute(code, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes),
            "there is not enough shared memory for a kernel that moves");
  }
  cudaLaunchConfig_t launch =
      launch_of(blocks, threads, static_cast<std::size_t>(shared_bytes), stream);
  launch.attrs = &how;
  launch.numAttrs = 1;
  void* pointers[] = {const_cast<void*>(static_cast<const void*>(&parameters))...};
  require(cudaLaunchKernelExC(&launch, code, pointers), failure);
}

}  // namespace detail

/// Starts a kernel that takes its places as the kernel before it in the stream leaves them, unless
/// `early` is false. It has to wait for the end of that one itself, before it touches anything. Its
/// blocks take `shared_bytes` each. Throws `internal` with `failure`.
template <class... Parameters>
void start_early(bool early, void (*kernel)(Parameters...), int blocks, int threads,
                 int shared_bytes, cudaStream_t stream, const char* failure,
                 const std::type_identity_t<Parameters>&... parameters) {
  detail::start(starting_early(early), kernel, blocks, threads, shared_bytes, stream, failure,
                parameters...);
}

/// Starts a kernel whose blocks, an even number, take `shared_bytes` each, beside a GEMM: in pairs,
/// as multiprocessors come, since one that is left alone has no room for a cluster. Throws
/// `internal` with `failure`.
template <class... Parameters>
void start_in_pairs(void (*kernel)(Parameters...), int blocks, int threads, int shared_bytes,
                    cudaStream_t stream, const char* failure,
                    const std::type_identity_t<Parameters>&... parameters) {
  detail::start(in_clusters(2), kernel, blocks, threads, shared_bytes, stream, failure,
                parameters...);
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

#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <type_traits>

#include "src/symmetric/cuda/driver.hpp"

namespace untax::gpu {

/// Loads a kernel on the current device. If a kernel were loaded at its first launch, it could wait
/// behind a kernel that waits for a peer, and no other thread of the process could launch
/// meanwhile, not even the peer's thread if ranks are threads. Throws `internal` with `failure`.
inline void load_kernel(const void* kernel, const char* failure) {
  cudaFuncAttributes loaded{};
  require(cudaFuncGetAttributes(&loaded, kernel), failure);
}

/// A launch of `blocks` blocks of `threads` threads without attributes.
[[nodiscard]] inline cudaLaunchConfig_t launch_of(int blocks, int threads, std::size_t shared_bytes,
                                                  cudaStream_t stream) {
  cudaLaunchConfig_t launch{};
  launch.gridDim = dim3(static_cast<unsigned>(blocks));
  launch.blockDim = dim3(static_cast<unsigned>(threads));
  launch.dynamicSmemBytes = shared_bytes;
  launch.stream = stream;
  return launch;
}
/// With `early`, a kernel may start before the previous kernel of its stream has ended.
[[nodiscard]] inline cudaLaunchAttribute programmatic_launch(bool early) {
  cudaLaunchAttribute how{};
  how.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  how.val.programmaticStreamSerializationAllowed = early ? 1 : 0;
  return how;
}
/// Clusters of `blocks` blocks.
[[nodiscard]] inline cudaLaunchAttribute in_clusters(int blocks) {
  cudaLaunchAttribute how{};
  how.id = cudaLaunchAttributeClusterDimension;
  how.val.clusterDim = {static_cast<unsigned>(blocks), 1, 1};
  return how;
}

namespace detail {

template <class... Parameters>
void start(bool early, int together, void (*kernel)(Parameters...), int blocks, int threads,
           int shared_bytes, cudaStream_t stream, const char* failure,
           const std::type_identity_t<Parameters>&... parameters) {
  const auto* const code = reinterpret_cast<const void*>(kernel);
  if (shared_bytes > 0) {
    require(cudaFuncSetAttribute(code, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes),
            "there is not enough shared memory for a kernel");
  }
  cudaLaunchConfig_t launch =
      launch_of(blocks, threads, static_cast<std::size_t>(shared_bytes), stream);
  cudaLaunchAttribute attributes[] = {programmatic_launch(early), in_clusters(together)};
  launch.attrs = attributes;
  launch.numAttrs = 2;
  void* pointers[] = {const_cast<void*>(static_cast<const void*>(&parameters))...};
  require(cudaLaunchKernelExC(&launch, code, pointers), failure);
}

}  // namespace detail

/// Launches a kernel that may start before the previous kernel of its stream has ended, unless
/// `early` is false. It has to wait for the end of that kernel itself before it accesses any
/// memory. Throws `internal` with `failure`.
template <class... Parameters>
void start_pdl(bool early, void (*kernel)(Parameters...), int blocks, int threads,
               cudaStream_t stream, const char* failure,
               const std::type_identity_t<Parameters>&... parameters) {
  detail::start(early, 1, kernel, blocks, threads, 0, stream, failure, parameters...);
}

/// As `start_pdl`, for an even number of blocks with `shared_bytes` each, in clusters of two: a
/// GEMM after or beside them needs pairs of multiprocessors, since a cluster does not fit on a
/// single one.
template <class... Parameters>
void start_in_pairs(bool early, void (*kernel)(Parameters...), int blocks, int threads,
                    int shared_bytes, cudaStream_t stream, const char* failure,
                    const std::type_identity_t<Parameters>&... parameters) {
  detail::start(early, 2, kernel, blocks, threads, shared_bytes, stream, failure, parameters...);
}

/// Selects the largest shared memory carveout for a kernel. Otherwise a multiprocessor has to run
/// empty to change its carveout before a kernel that takes all shared memory.
template <class... Parameters>
void prefer_shared_memory(void (*kernel)(Parameters...)) {
  require(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                               cudaFuncAttributePreferredSharedMemoryCarveout,
                               cudaSharedmemCarveoutMaxShared),
          "cannot set the shared memory carveout of a kernel");
}

}  // namespace untax::gpu

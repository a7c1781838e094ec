#pragma once

#include <cuda_runtime_api.h>

#include <string_view>

#include <untax/world/world.hpp>

namespace untax::gpu {

/// What the current device is, and how many multiprocessors it has.
[[nodiscard]] int attribute_here(cudaDeviceAttr which);
[[nodiscard]] inline int num_sms_here() { return attribute_here(cudaDevAttrMultiProcessorCount); }
/// Those that kernels of this rank may take, which wait for others and so need all their blocks
/// running: all of its GPU's, or its part where ranks share one. An even number then, for clusters.
[[nodiscard]] int num_sms_of(const world& w);

/// Throws `unsupported` where ranks share a GPU and it has more streams than queues. By whoever has
/// made streams, before anything waits in one.
void require_queues(const world& w);

/// By the destructor of what has symmetric memory for kernels, before it meets the others to give
/// that back: waits for everything that runs on the current device. False if there is no meeting,
/// since a kernel failed, or the world was stopped, or an exception is about to stop it; the memory
/// goes with the world then.
[[nodiscard]] bool ends_with_others(const world& w) noexcept;

/// Throws `unsupported` where ranks share a GPU: what cannot be done there.
void require_own_gpu(const world& w, std::string_view what);
/// The same for streams where one rank's kernel may wait behind another's: the default one, which
/// they have together, and one that is captured: nobody counts the queues of a graph's branches.
void require_stream(const world& w, cudaStream_t stream);

}  // namespace untax::gpu

#pragma once

#include <cuda_runtime_api.h>

#include <untax/core/pattern.hpp>
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

/// Throws `unsupported` for `copy_engine` where ranks share a GPU: copies within a GPU may need
/// multiprocessors, and kernels that wait have them all.
void require_own_gpu(const world& w, pattern how);
/// Throws `unsupported` where ranks share a GPU and the stream is being captured: the branches of
/// graphs have queues that nobody counts, and one rank's kernel may wait in one behind another's.
void require_no_graph(const world& w, cudaStream_t stream);

}  // namespace untax::gpu

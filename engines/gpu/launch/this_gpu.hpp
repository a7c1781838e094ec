#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <string_view>

#include <untax/world/world.hpp>

namespace untax::gpu {

/// What the current device is, and how many multiprocessors it has.
[[nodiscard]] int attribute_here(cudaDeviceAttr which);
[[nodiscard]] inline int num_sms_here() { return attribute_here(cudaDevAttrMultiProcessorCount); }
/// Those that kernels of this rank may take, which wait for others and so need all their blocks
/// running: all of its GPU's, or its part where ranks share one. An even number then, for clusters.
[[nodiscard]] int num_sms_of(const world& w);

/// Memory of the current device that peers do not reach, freed at the end.
class scratch_memory {
 public:
  scratch_memory() = default;
  scratch_memory(const scratch_memory&) = delete;
  scratch_memory& operator=(const scratch_memory&) = delete;
  ~scratch_memory();

  /// Once. Every byte is `value`. Waits for all that runs on the device. Throws `out_of_memory`
  /// that says what `owner` needs.
  void* allocate(std::size_t bytes, const char* owner, int value = 0);

 private:
  void* data_ = nullptr;
};

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

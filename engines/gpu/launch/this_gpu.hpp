#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <string_view>

#include <untax/world/world.hpp>

namespace untax::gpu {

/// An attribute of the current device.
[[nodiscard]] int attribute_here(cudaDeviceAttr which);
[[nodiscard]] inline int num_sms_here() { return attribute_here(cudaDevAttrMultiProcessorCount); }
/// The SMs that kernels of this rank may occupy if they wait for peers, since all of their blocks
/// have to run: all SMs of the GPU, or an equal part if ranks share it. A part is even, for
/// clusters of two blocks.
[[nodiscard]] int num_sms_of(const world& w);

/// Memory of the current device that peers cannot access, freed by the destructor.
class scratch_memory {
 public:
  scratch_memory() = default;
  scratch_memory(const scratch_memory&) = delete;
  scratch_memory& operator=(const scratch_memory&) = delete;
  ~scratch_memory();

  /// To be called once. Returns when every byte is `value`, and waits for no kernel. Throws
  /// `out_of_memory`, with a message that names `owner`.
  void* allocate(std::size_t bytes, const char* owner, int value = 0);

 private:
  void* data_ = nullptr;
};

/// Throws `unsupported` where ranks share a GPU that has more streams than queues. To be called
/// after streams were made, before any work waits in one of them.
void require_queues(const world& w);

/// Destructors that free symmetric memory of kernels call this function first. Makes the rank's GPU
/// the current device, and waits for all work on it. Returns false if a kernel failed, the world
/// was stopped, or an exception is about to stop it: then the memory is freed with the world.
[[nodiscard]] bool kernels_ended(const world& w) noexcept;

/// Throws `unsupported` where ranks share a GPU. `what` names the unsupported feature.
void require_own_gpu(const world& w, std::string_view what);
/// As `require_own_gpu`, for streams in which a kernel may wait behind another rank's: the default
/// stream, which ranks share, and a captured one, since the queues of a graph's branches are not
/// counted.
void require_stream(const world& w, cudaStream_t stream);

}  // namespace untax::gpu

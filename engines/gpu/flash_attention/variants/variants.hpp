#pragma once

#include <cstddef>

#include <untax/core/types.hpp>

namespace untax::gpu {

/// An attention kernel, and its dynamic shared memory per block.
struct flash_kernel {
  const void* function = nullptr;
  std::size_t shared_bytes = 0;
};

// Each is in a source file of its own, since the kernels take long to compile.
[[nodiscard]] flash_kernel flash_attention_of_width_64(dtype type, bool causal);
[[nodiscard]] flash_kernel flash_attention_of_width_128(dtype type, bool causal);
[[nodiscard]] flash_kernel flash_attention_of_width_256(dtype type, bool causal);

}  // namespace untax::gpu

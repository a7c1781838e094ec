#pragma once

#include <cstddef>

#include <untax/core/types.hpp>

namespace untax::gpu {

/// An attention kernel, and its launch parameters.
struct attention_kernel {
  const void* function = nullptr;
  int fewest_threads = 0;
  int most_threads = 0;  ///< if no other kernel must fit beside it
  std::size_t shared_bytes = 0;
};

// Each is in a source file of its own, since the kernels take long to compile.
[[nodiscard]] attention_kernel attention_of_width_64(dtype type, bool paged, bool fixed_parts);
[[nodiscard]] attention_kernel attention_of_width_128(dtype type, bool paged, bool fixed_parts);
[[nodiscard]] attention_kernel attention_of_width_256(dtype type, bool paged, bool fixed_parts);

}  // namespace untax::gpu

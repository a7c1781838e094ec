#pragma once

#include <cstddef>

#include <untax/core/types.hpp>

namespace untax::gpu {

/// A kernel of attention, and how it is launched.
struct attention_kernel {
  const void* function = nullptr;
  int fewest_threads = 0;
  int most_threads = 0;  ///< where it receives
  std::size_t shared_bytes = 0;
};

// One a file, since they take long to compile.
[[nodiscard]] attention_kernel attention_of_width_64(dtype type, bool paged);
[[nodiscard]] attention_kernel attention_of_width_128(dtype type, bool paged);
[[nodiscard]] attention_kernel attention_of_width_256(dtype type, bool paged);

}  // namespace untax::gpu

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "engines/gpu/launch/this_gpu.hpp"
#include "engines/gpu/rooms/room_pool.hpp"

namespace untax::gpu {

/// Memory of this GPU in which blocks of a kernel leave partial sums for other blocks. All words
/// are empty at first, and each kernel leaves them empty when it ends. So kernels that run in turn
/// can share the memory.
class partial_sums {
 public:
  static constexpr std::uint32_t empty_word = 0xffffffffU;  ///< of all bits, as memset writes it

  /// Throws `out_of_memory`.
  explicit partial_sums(std::size_t bytes)
      : bytes_(bytes), data_(static_cast<float*>(memory_.allocate(bytes, "a GEMM", 0xff))) {}

  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] float* data() const noexcept { return data_; }

 private:
  scratch_memory memory_;
  std::size_t bytes_;
  float* data_;
};

/// At least `bytes` bytes, which the plans of a pool share; without a pool the memory belongs to
/// the caller. Throws `out_of_memory`.
[[nodiscard]] std::shared_ptr<const partial_sums> partials_of(room_pool* pool, std::size_t bytes);

}  // namespace untax::gpu

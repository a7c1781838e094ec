#pragma once

#include <cstddef>

#include <untax/core/stream_ref.hpp>

namespace untax::bulk {

/// Memory of one GPU. The destructor frees it, which may wait for work on that GPU.
class scratch {
 public:
  scratch() = default;
  /// On the current device. Throws `out_of_memory`, `unsupported` where CUDA is not compiled in.
  explicit scratch(std::size_t bytes);
  scratch(scratch&& other) noexcept;
  scratch& operator=(scratch&& other) noexcept;
  ~scratch();

  [[nodiscard]] void* data(std::size_t at = 0) const noexcept { return data_ + at; }

 private:
  std::byte* data_ = nullptr;
};

/// to = from, both in memory of the current device. Asynchronous; can be captured.
void copy_bytes(void* to, const void* from, std::size_t bytes, stream_ref stream);

/// Copies in any direction, also into memory of peers, and returns when the bytes have arrived.
/// cudaMemcpy may return earlier, while bytes of the host are in transit.
void copy_and_wait(void* to, const void* from, std::size_t bytes);

}  // namespace untax::bulk

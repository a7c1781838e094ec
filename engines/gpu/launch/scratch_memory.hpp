#pragma once

#include <cstddef>

namespace untax::gpu {

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

}  // namespace untax::gpu

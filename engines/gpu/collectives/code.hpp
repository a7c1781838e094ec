#pragma once

#include <cstddef>
#include <string>
#include <type_traits>
#include <vector>

namespace untax::gpu {

/// The first argument of a kernel, as bytes: what the kernel was compiled for.
class kernel_argument {
 public:
  kernel_argument() = default;
  template <class T>
  requires(std::is_trivially_copyable_v<T>) explicit kernel_argument(const T& value)
      : bytes_(reinterpret_cast<const std::byte*>(&value),
               reinterpret_cast<const std::byte*>(&value) + sizeof(T)) {}

  [[nodiscard]] void* data() noexcept { return bytes_.data(); }
  [[nodiscard]] std::size_t size() const noexcept { return bytes_.size(); }

 private:
  std::vector<std::byte> bytes_;
};

/// Kernels that carry a collective out, and what they need. What one of them is compiled for is
/// known where it is made; the engine, which is compiled once, launches any.
///
/// The kernel is a `__global__` function of (first_argument, run_arguments).
struct transfer_code {
  const void* kernel = nullptr;
  kernel_argument first_argument;
  std::vector<int> blocks;       ///< of each launch of a run, in order
  int threads = 0;               ///< of a block
  std::size_t shared_bytes = 0;  ///< of a block, dynamic
  std::size_t inbox_bytes = 0;   ///< of each rank
  int counters = 0;              ///< of each rank
  int element_bytes = 0;
  std::string text;  ///< what was chosen, for people
};

}  // namespace untax::gpu

#pragma once

#include <cstddef>
#include <string>
#include <type_traits>
#include <vector>

#include "engines/gpu/rooms/room_content.hpp"

namespace untax::gpu {

/// The first argument of a kernel, as bytes. The kernel is compiled for the type of this argument.
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

/// The kernel of a collective, and what its launches need. Only the code that fills this in knows
/// the types that the kernel is compiled for. The engine is compiled once and launches any kernel.
///
/// The kernel is a `__global__` function of (first_argument, run_arguments).
struct collective_kernel {
  const void* kernel = nullptr;
  kernel_argument first_argument;
  std::vector<int> blocks;       ///< per launch of a run, in order
  int threads = 0;               ///< per block
  std::size_t shared_bytes = 0;  ///< per block, dynamic
  std::size_t inbox_bytes = 0;   ///< per rank
  int counters = 0;              ///< per rank
  int element_bytes = 0;
  room_content content = room_content::counted;  ///< of the inbox
  bool early = false;  ///< the kernel itself waits for the kernels ahead, so it may launch before
                       ///< they end
  std::string text;    ///< what was chosen, in human-readable form
};

}  // namespace untax::gpu

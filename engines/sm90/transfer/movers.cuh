#pragma once

#include <cstddef>
#include <cstdint>

#include <untax/rma/bulk_copy.cuh>

namespace untax::sm90 {

/// Moves bytes with ordinary loads and stores of all threads of a block.
class store_mover {
 public:
  static constexpr int threads = 512;
  static constexpr std::size_t shared_bytes = 0;
  static constexpr const char* name = "stores";

  explicit __device__ store_mover(std::byte* /*shared*/) noexcept {}

  /// The caller synchronises. Both sides are aligned to 2 bytes.
  __device__ void move(std::byte* to, const std::byte* from, std::int64_t bytes) const {
    move_bytes(to, from, bytes);
  }

 private:
  __device__ __noinline__ static void move_bytes(std::byte* to, const std::byte* from,
                                                 std::int64_t bytes) {
    untax::detail::move_elements(device_block(), reinterpret_cast<std::uint16_t*>(to),
                                 reinterpret_cast<const std::uint16_t*>(from), bytes / 2);
  }
};

/// Moves bytes with the copy engine of the block's multiprocessor.
class bulk_mover {
 public:
  using ring = bulk_ring<>;
  static constexpr int threads = 256;
  static constexpr std::size_t shared_bytes = sizeof(ring::memory);
  static constexpr const char* name = "bulk copies";

  explicit __device__ bulk_mover(std::byte* shared)
      : ring_(device_block(), *reinterpret_cast<ring::memory*>(shared)) {}

  __device__ __noinline__ void move(std::byte* to, const std::byte* from, std::int64_t bytes) {
    bulk_copy(device_block(), ring_, reinterpret_cast<std::uint16_t*>(to),
              reinterpret_cast<const std::uint16_t*>(from), bytes / 2);
  }

 private:
  ring ring_;
};

}  // namespace untax::sm90

#pragma once

#include <cstddef>
#include <cstdint>

#include <untax/rma/bulk_copy.cuh>

#include "engines/gpu/collectives/worker_warps.cuh"

namespace untax::gpu {

/// Moves bytes with ordinary loads and stores by all threads of the worker warps.
class store_sender {
 public:
  /// With the control warp a block has 512 threads, so that each may have 128 registers.
  using group = worker_warps<480>;
  static constexpr std::size_t shared_bytes = 0;
  static constexpr const char* name = "stores";

  explicit __device__ store_sender(std::byte* /*shared*/) noexcept {}

  /// Does not synchronise; the caller must. Both addresses must be aligned to 2 bytes.
  __device__ void move(std::byte* to, const std::byte* from, std::int64_t bytes) const {
    untax::detail::move_elements(group(), reinterpret_cast<std::uint16_t*>(to),
                                 reinterpret_cast<const std::uint16_t*>(from), bytes / 2);
  }
};

/// Moves bytes with TMA.
class bulk_sender {
 public:
  using ring = bulk_ring<>;
  using group = worker_warps<256>;
  static constexpr std::size_t shared_bytes = sizeof(ring::memory);
  static constexpr const char* name = "bulk copies";

  /// Called by all threads of the block.
  explicit __device__ bulk_sender(std::byte* shared)
      : ring_(device_block(), *reinterpret_cast<ring::memory*>(shared)) {}

  __device__ void move(std::byte* to, const std::byte* from, std::int64_t bytes) {
    bulk_copy(group(), ring_, reinterpret_cast<std::uint16_t*>(to),
              reinterpret_cast<const std::uint16_t*>(from), bytes / 2);
  }

 private:
  ring ring_;
};

}  // namespace untax::gpu

#pragma once

#include <atomic>
#include <cstdint>

namespace untax {

/// The memory order of an atomic operation. There is no sequentially consistent order: see
/// docs/memory_model.md.
enum class memory_order : std::uint8_t {
  relaxed,  ///< atomic, orders nothing else
  acquire,  ///< earlier writes of the releasing thread are visible after it
  release,  ///< earlier writes of this thread are visible to a thread that acquires
  acq_rel,  ///< both
};

/// The threads among which an operation is atomic and ordered. Caches of a host are coherent, so
/// there a smaller scope costs the same as `system`; on a GPU it is cheaper.
enum class memory_scope : std::uint8_t {
  block,   ///< the threads of one block
  device,  ///< all blocks of one rank
  system,  ///< all ranks
};

namespace detail {

[[nodiscard]] constexpr std::memory_order exchange_order(memory_order order) noexcept {
  switch (order) {
    case memory_order::relaxed:
      return std::memory_order_relaxed;
    case memory_order::acquire:
      return std::memory_order_acquire;
    case memory_order::release:
      return std::memory_order_release;
    case memory_order::acq_rel:
      break;
  }
  return std::memory_order_acq_rel;
}

/// The part of `order` that applies to a load.
[[nodiscard]] constexpr std::memory_order load_order(memory_order order) noexcept {
  const bool acquires = order == memory_order::acquire || order == memory_order::acq_rel;
  return acquires ? std::memory_order_acquire : std::memory_order_relaxed;
}

/// The part of `order` that applies to a store.
[[nodiscard]] constexpr std::memory_order store_order(memory_order order) noexcept {
  const bool releases = order == memory_order::release || order == memory_order::acq_rel;
  return releases ? std::memory_order_release : std::memory_order_relaxed;
}

}  // namespace detail
}  // namespace untax

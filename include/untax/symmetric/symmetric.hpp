#pragma once

#include <cstddef>
#include <type_traits>

#include <untax/core/host_device.hpp>
#include <untax/symmetric/heap_watch.hpp>

namespace untax {

/// A handle of an allocation in the symmetric heaps of all ranks, with `size()` elements at each.
/// It is a few words, is copied freely and owns nothing; `symmetric_heap::free` frees the
/// allocation. Host and kernels can use it.
template <class T>
class symmetric {
  static_assert(std::is_trivially_copyable_v<T>,
                "symmetric memory is shared by processes: plain data only");

 public:
  symmetric() = default;
  /// `local` is this rank's copy; `span` is the distance in bytes between the copies of
  /// neighbouring ranks. `checked_ranks` is the size of the world if `at` has to check its
  /// arguments, else 0.
  UNTAX_HOST_DEVICE symmetric(T* local, std::size_t size, int rank, std::size_t span,
                              int checked_ranks = 0) noexcept
      : local_(local),
        size_(size),
        rank_(rank),
        checked_ranks_(checked_ranks),
        span_(static_cast<std::ptrdiff_t>(span)) {}

  /// The address of element `i` at this rank. It is not checked.
  [[nodiscard]] UNTAX_HOST_DEVICE T* local(std::size_t i = 0) const noexcept { return local_ + i; }
  /// The address of element `i` at rank `peer`, which has to be reachable (`world::reachable`). If
  /// heaps have guards, the host throws `invalid_argument` for a rank that does not exist, and for
  /// an element beyond the one past the last. Kernels do not check.
  [[nodiscard]] UNTAX_HOST_DEVICE T* at(int peer, std::size_t i = 0) const {
#ifndef __CUDA_ARCH__
    if (checked_ranks_ > 0 && (peer < 0 || peer >= checked_ranks_ || i > size_)) [[unlikely]]
      detail::refuse_place(rank_, peer, checked_ranks_, i, size_);
#endif
    using byte = std::conditional_t<std::is_const_v<T>, const std::byte, std::byte>;
    return reinterpret_cast<T*>(reinterpret_cast<byte*>(local_) + (peer - rank_) * span_) + i;
  }
  [[nodiscard]] UNTAX_HOST_DEVICE std::size_t size() const noexcept { return size_; }
  [[nodiscard]] UNTAX_HOST_DEVICE std::size_t size_bytes() const noexcept {
    return size_ * sizeof(T);
  }
  [[nodiscard]] UNTAX_HOST_DEVICE int rank() const noexcept { return rank_; }
  /// Bytes from the copy of a rank to that of the next one.
  [[nodiscard]] UNTAX_HOST_DEVICE std::ptrdiff_t span() const noexcept { return span_; }
  [[nodiscard]] UNTAX_HOST_DEVICE explicit operator bool() const noexcept {
    return local_ != nullptr;
  }

 private:
  T* local_ = nullptr;
  std::size_t size_ = 0;
  int rank_ = 0;
  int checked_ranks_ = 0;
  std::ptrdiff_t span_ = 0;
};

}  // namespace untax

#pragma once

#include <utility>

#include <untax/symmetric/heap.hpp>
#include <untax/symmetric/symmetric.hpp>

namespace untax {

/// A symmetric allocation that ends with its owner. It is then retired and not freed: this rank is
/// done with it, but peers may not be. So the destructor does not wait, also if construction fails
/// half-way or an exception propagates.
template <class T>
class owned_symmetric {
 public:
  owned_symmetric() = default;
  /// Takes over an allocation of `heap`, which has to outlive the owner.
  owned_symmetric(symmetric_heap& heap, const symmetric<T>& memory) noexcept
      : heap_(&heap), memory_(memory) {}
  owned_symmetric(owned_symmetric&& other) noexcept
      : heap_(other.heap_), memory_(std::exchange(other.memory_, {})) {}
  owned_symmetric& operator=(owned_symmetric&& other) noexcept {
    if (this == &other) return *this;
    reset();
    heap_ = other.heap_;
    memory_ = std::exchange(other.memory_, {});
    return *this;
  }
  ~owned_symmetric() { reset(); }

  /// Retires the memory. Threads and kernels of this rank must be done with it.
  void reset() noexcept {
    if (memory_) heap_->retire_bytes(memory_.local());
    memory_ = {};
  }
  /// Leaves the memory allocated until the world ends: kernels of this rank may still use it.
  void abandon() noexcept { memory_ = {}; }

  [[nodiscard]] const symmetric<T>& get() const noexcept { return memory_; }
  [[nodiscard]] const symmetric<T>* operator->() const noexcept { return &memory_; }
  [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(memory_); }

 private:
  symmetric_heap* heap_ = nullptr;
  symmetric<T> memory_;
};

}  // namespace untax

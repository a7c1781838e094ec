#pragma once

#include <cstddef>
#include <memory>
#include <new>

namespace untax::model {

/// Counters or cells of the model checker, constructed anew for each execution. When an execution
/// fails they are not destroyed, because the checker, to which their destructors would report, is
/// gone. So this class never destroys them by itself.
template <class T>
class execution_array {
 public:
  explicit execution_array(std::size_t size) : size_(size), memory_(new slot[size]) {}

  /// `create` is for the start of an execution, `destroy` for its end.
  void create() {
    for (std::size_t i = 0; i < size_; ++i) ::new (static_cast<void*>(memory_[i].bytes)) T();
  }
  void destroy() {
    for (std::size_t i = 0; i < size_; ++i) std::destroy_at(&(*this)[i]);
  }

  [[nodiscard]] T& operator[](std::size_t i) const {
    return *std::launder(
        reinterpret_cast<T*>(memory_[i].bytes));  // NOLINT(*-reinterpret-cast): raw storage
  }

 private:
  struct slot {
    alignas(T) std::byte bytes[sizeof(T)];
  };
  std::size_t size_;
  std::unique_ptr<slot[]> memory_;
};

}  // namespace untax::model

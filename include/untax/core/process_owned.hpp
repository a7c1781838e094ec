#pragma once

#include <cstdint>
#include <memory>
#include <utility>

namespace untax {

/// The number of forks between the first process that used untax and this one. A parent and its
/// child have different numbers.
[[nodiscard]] std::uint64_t process_generation() noexcept;

/// Keeps `p` reachable until the process ends, so that a leak checker does not report an object
/// that a child must not destroy.
void leave_behind(const void* p) noexcept;

/// Deletes the object only in the process that made it. A child that was forked later has a copy of
/// the object without its threads, which it cannot join, and with handles that the parent still
/// uses. The child leaves that copy alone.
class delete_where_made {
 public:
  template <class T>
  void operator()(T* p) const noexcept {
    if (made_in_ == process_generation()) {
      delete p;
    } else {
      leave_behind(p);
    }
  }

 private:
  std::uint64_t made_in_ = process_generation();
};

/// A unique_ptr for an object that has threads or shares memory with other processes.
template <class T>
using process_owned = std::unique_ptr<T, delete_where_made>;

/// Makes a `T` that only this process deletes.
template <class T, class... Arguments>
[[nodiscard]] process_owned<T> make_process_owned(Arguments&&... arguments) {
  return process_owned<T>(new T(std::forward<Arguments>(arguments)...));
}

}  // namespace untax

#pragma once

#include <cstdint>
#include <memory>
#include <utility>

namespace untax {

/// How often this process was forked from one that used untax: a parent and its child have
/// different numbers.
[[nodiscard]] std::uint64_t process_generation() noexcept;

/// Keeps what a child may not destroy.
void leave_behind(const void* p) noexcept;

/// Deletes in the process that made the object only. A child that was forked later has a copy
/// without its threads, which must not be joined, and with handles on what the parent goes on
/// using; it leaves that copy alone.
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

/// A unique_ptr for what has threads, or a share in memory of several processes.
template <class T>
using process_owned = std::unique_ptr<T, delete_where_made>;

template <class T, class... Arguments>
[[nodiscard]] process_owned<T> make_process_owned(Arguments&&... arguments) {
  return process_owned<T>(new T(std::forward<Arguments>(arguments)...));
}

}  // namespace untax

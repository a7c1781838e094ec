#pragma once

#include <atomic>
#include <cstddef>
#include <string>

namespace untax {

class symmetric_heap;

namespace detail {

inline std::atomic<int> guarded_heaps = 0;

/// Refuses `at(peer, i)` for a rank outside the world, or for an element beyond the allocation.
/// Throws `invalid_argument`.
[[noreturn]] void refuse_place(int rank, int peer, int ranks, std::size_t i, std::size_t size);

}  // namespace detail

/// Whether any heap of this process has guards, so that verbs check addresses.
[[nodiscard]] inline bool heaps_are_guarded() noexcept {
  return detail::guarded_heaps.load(std::memory_order_relaxed) > 0;
}

/// Describes the error if `bytes` bytes at `p` begin in a heap with guards, of any rank, and are
/// not all in one allocation. Empty otherwise. Any thread may call it.
[[nodiscard]] std::string outside_allocations(const volatile void* p, std::size_t bytes);

/// Registers a heap with guards for `outside_allocations`, as long as it exists.
class heap_watch {
 public:
  heap_watch(const symmetric_heap& heap, bool guards);
  heap_watch(const heap_watch&) = delete;
  heap_watch& operator=(const heap_watch&) = delete;
  ~heap_watch();

  /// Locks the list while the heap changes. It does nothing without guards.
  class change {
   public:
    explicit change(const heap_watch& watched);
    change(const change&) = delete;
    change& operator=(const change&) = delete;
    ~change();

   private:
    bool guards_;
  };

 private:
  const symmetric_heap* heap_;
  bool guards_;
};

}  // namespace untax

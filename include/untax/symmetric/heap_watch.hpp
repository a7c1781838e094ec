#pragma once

#include <atomic>
#include <cstddef>
#include <string>

namespace untax {

class symmetric_heap;

namespace detail {

inline std::atomic<int> guarded_heaps = 0;

/// `at(peer, i)` outside the world, or behind the allocation. Throws `invalid_argument`.
[[noreturn]] void refuse_place(int rank, int peer, int ranks, std::size_t i, std::size_t size);

}  // namespace detail

/// Whether a heap of this process has guards, so that addresses are worth a look.
[[nodiscard]] inline bool heaps_are_guarded() noexcept {
  return detail::guarded_heaps.load(std::memory_order_relaxed) > 0;
}

/// What is wrong with touching `bytes` at `p`: it begins in a heap with guards, of any rank, and
/// not all of it lies in one allocation. Empty if nothing is. Any thread may ask.
[[nodiscard]] std::string outside_allocations(const volatile void* p, std::size_t bytes);

/// Lists a heap with guards for `outside_allocations`, while it lives.
class heap_watch {
 public:
  heap_watch(const symmetric_heap& heap, bool guards);
  heap_watch(const heap_watch&) = delete;
  heap_watch& operator=(const heap_watch&) = delete;
  ~heap_watch();

  /// Keeps others from looking while the heap changes; nothing without guards.
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

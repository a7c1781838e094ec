#include <untax/symmetric/heap_watch.hpp>

#include <algorithm>
#include <mutex>
#include <vector>

#include <fmt/format.h>

#include <untax/core/error.hpp>
#include <untax/symmetric/heap.hpp>

namespace untax {
namespace {

/// The heaps with guards. The mutex protects this list and the bookkeeping of the heaps.
struct watched_heaps {
  std::mutex mutex;
  std::vector<const symmetric_heap*> heaps;
};

watched_heaps& watched() {
  static watched_heaps heaps;
  return heaps;
}

}  // namespace

heap_watch::heap_watch(const symmetric_heap& heap, bool guards) : heap_(&heap), guards_(guards) {
  if (!guards_) return;
  const std::scoped_lock lock(watched().mutex);
  watched().heaps.push_back(heap_);
  ++detail::guarded_heaps;
}

heap_watch::~heap_watch() {
  if (!guards_) return;
  const std::scoped_lock lock(watched().mutex);
  std::erase(watched().heaps, heap_);
  --detail::guarded_heaps;
}

heap_watch::change::change(const heap_watch& watched_one) : guards_(watched_one.guards_) {
  if (guards_) watched().mutex.lock();
}
heap_watch::change::~change() {
  if (guards_) watched().mutex.unlock();
}

std::string outside_allocations(const volatile void* p, std::size_t bytes) {
  const auto* const begin = const_cast<const void*>(p);  // NOLINT(*-const-cast): only its address
  std::string wrong;
  const std::scoped_lock lock(watched().mutex);
  // Ranks of one process share the arenas. A peer may not have made the allocation yet, so it is
  // enough if the heap of one rank has it.
  for (const symmetric_heap* heap : watched().heaps) {
    const int owner = heap->memory().owner_of(begin);
    if (owner < 0) continue;
    const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(begin) -
                                                 heap->memory().arena(owner));
    const auto use = heap->use_at(offset);
    if (use && bytes <= use->offset + use->bytes - offset) return "";
    if (use) {
      wrong =
          fmt::format("reaches {} bytes past the end of \"{}\" of rank {} ({} bytes)",
                      bytes - (use->offset + use->bytes - offset), use->label, owner, use->bytes);
    } else if (wrong.empty()) {
      wrong = fmt::format("begins at offset {} of the heap of rank {}, where nothing is allocated",
                          offset, owner);
    }
  }
  return wrong;
}

void detail::refuse_place(int rank, int peer, int ranks, std::size_t i, std::size_t size) {
  if (peer < 0 || peer >= ranks) {
    throw error(errc::invalid_argument,
                fmt::format("rank {}: symmetric::at: there is no rank {}; ranks are 0 to {}", rank,
                            peer, ranks - 1));
  }
  throw error(errc::invalid_argument,
              fmt::format("rank {}: symmetric::at: element {} of rank {} is asked for, and the "
                          "allocation has {}",
                          rank, i, peer, size));
}

}  // namespace untax

#include <untax/core/process_owned.hpp>

#include <pthread.h>

#include <atomic>
#include <new>

namespace untax {
namespace {

std::atomic<std::uint64_t> forks = 0;

}  // namespace

std::uint64_t process_generation() noexcept {
  // The first call comes before any object that a child must leave alone, so no fork is missed.
  static const int registered = pthread_atfork(nullptr, nullptr, [] { ++forks; });
  static_cast<void>(registered);
  return forks.load(std::memory_order_relaxed);
}

void leave_behind(const void* p) noexcept {
  // A list without a lock, since a thread that held the lock may not exist in this process. The
  // list is never freed: its entries stay reachable, so they are not reported as leaks.
  struct entry {
    const void* object;
    entry* next;
  };
  static std::atomic<entry*> head = nullptr;
  auto* const node = new (std::nothrow) entry{p, nullptr};
  if (node != nullptr) node->next = head.exchange(node, std::memory_order_relaxed);
}

}  // namespace untax

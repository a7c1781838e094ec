#include <untax/core/process_owned.hpp>

#include <pthread.h>

#include <atomic>
#include <mutex>
#include <vector>

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
  try {
    // Never destroyed: the listed objects stay reachable, so they are not reported as leaks.
    static auto* const left = new std::vector<const void*>;
    left->push_back(p);
  } catch (const std::bad_alloc&) {
    return;
  }
}

}  // namespace untax

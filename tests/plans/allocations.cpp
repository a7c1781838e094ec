#include "tests/plans/allocations.hpp"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<bool> counting{false};
std::atomic<std::uint64_t> allocations{0};

void* counted_or_null(std::size_t bytes) noexcept {
  if (counting.load(std::memory_order_relaxed)) allocations.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(bytes == 0 ? 1 : bytes);  // NOLINT(*-no-malloc)
}

void* counted(std::size_t bytes) {
  if (void* p = counted_or_null(bytes)) return p;
  throw std::bad_alloc();
}

}  // namespace

// The program's own, which count.
void* operator new(std::size_t bytes) { return counted(bytes); }
void* operator new[](std::size_t bytes) { return counted(bytes); }
void* operator new(std::size_t bytes, const std::nothrow_t& /*unused*/) noexcept {
  return counted_or_null(bytes);
}
void operator delete(void* p) noexcept { std::free(p); }                 // NOLINT(*-no-malloc)
void operator delete[](void* p) noexcept { std::free(p); }               // NOLINT(*-no-malloc)
void operator delete(void* p, std::size_t) noexcept { std::free(p); }    // NOLINT(*-no-malloc)
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }  // NOLINT(*-no-malloc)

namespace untax::testing {

void count_allocations() noexcept {
  allocations = 0;
  counting = true;
}

std::uint64_t counted_allocations() noexcept {
  counting = false;
  return allocations;
}

}  // namespace untax::testing

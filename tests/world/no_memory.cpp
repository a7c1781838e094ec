// A rank that fails when there is no memory left, not even for the reason.
#include <atomic>
#include <cstdlib>
#include <new>
#include <string>

#include <untax/world/world.hpp>

#include "support.hpp"

namespace {

thread_local bool refused = false;
std::atomic<bool> refused_everywhere = false;

void* given_or_null(std::size_t bytes) {
  if (refused || refused_everywhere.load(std::memory_order_relaxed)) return nullptr;
  return std::malloc(bytes == 0 ? 1 : bytes);  // NOLINT(*-no-malloc)
}

void* given(std::size_t bytes) {
  void* const p = given_or_null(bytes);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}

}  // namespace

// The program's own, which a thread can be refused.
void* operator new(std::size_t bytes) { return given(bytes); }
void* operator new[](std::size_t bytes) { return given(bytes); }
void* operator new(std::size_t bytes, const std::nothrow_t& /*unused*/) noexcept {
  return given_or_null(bytes);
}
void operator delete(void* p) noexcept { std::free(p); }                 // NOLINT(*-no-malloc)
void operator delete[](void* p) noexcept { std::free(p); }               // NOLINT(*-no-malloc)
void operator delete(void* p, std::size_t) noexcept { std::free(p); }    // NOLINT(*-no-malloc)
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }  // NOLINT(*-no-malloc)

void world_test::refuse_memory(bool refuse) noexcept { refused_everywhere = refuse; }

namespace {

using untax::errc;
using untax::world;
using world_test::error_of;
using world_test::expect_error;

TEST(no_memory, stops_the_world_without_a_reason) {
  auto ranks = world::threads(2, world_test::small_world());
  const std::string reason(300, '.');
  refused = true;
  ranks[0].fail(errc::out_of_memory, reason);
  refused = false;
  EXPECT_TRUE(ranks[1].stopped());
  expect_error(error_of([&] { ranks[1].check(); }), errc::aborted, {"rank 0"});
}

}  // namespace

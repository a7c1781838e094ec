#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include <untax/memory/policy.hpp>

namespace untax {

/// The memory policy of ranks that are threads of one process, or processes that share a mapping.
/// Order comes from C++ atomics.
struct host_memory {
  using counter = std::uint64_t;
  template <class T>
  using cell = T;

  static std::uint64_t load_acquire(const counter& c) noexcept {
    return ref(c).load(std::memory_order_acquire);
  }

  /// A maximum by compare-exchange, so a signal that comes twice or late is harmless.
  static void raise_release(counter& c, std::uint64_t value) noexcept {
    auto counter_ref = ref(c);
    auto seen = counter_ref.load(std::memory_order_relaxed);
    while (seen < value && !counter_ref.compare_exchange_weak(
                               seen, value, std::memory_order_release, std::memory_order_relaxed)) {
    }
  }

  /// Spins first, since a peer that runs on another core answers soon. Then it yields the core, and
  /// then it sleeps: there are often more waiting workers than cores.
  static void pause(poll_count polls) noexcept {
    if (polls < 128) {
      relax();
    } else if (polls < 512) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }

  /// Nanoseconds of the steady clock.
  static std::uint64_t now() noexcept {
    return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                          std::chrono::steady_clock::now().time_since_epoch())
                                          .count());
  }

  /// Atomic access to a plain 64-bit location of symmetric memory.
  static std::atomic_ref<std::uint64_t> ref(const counter& c) noexcept {
    return std::atomic_ref<std::uint64_t>(
        const_cast<counter&>(c));  // NOLINT(cppcoreguidelines-pro-type-const-cast)
  }

 private:
  static void relax() noexcept {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }
};

static_assert(memory_policy<host_memory>);

}  // namespace untax

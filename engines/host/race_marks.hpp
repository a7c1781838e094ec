#pragma once

#include <cstdint>

#include <untax/core/types.hpp>

#include "engines/host/convert.hpp"

#if defined(__SANITIZE_THREAD__)
#define UNTAX_MARKS_RACES 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define UNTAX_MARKS_RACES 1
#endif
#endif

#ifdef UNTAX_MARKS_RACES
extern "C" void __tsan_read_range(void* address,
                                  unsigned long size);  // NOLINT(bugprone-reserved-identifier)
extern "C" void __tsan_write_range(void* address,
                                   unsigned long size);  // NOLINT(bugprone-reserved-identifier)
extern "C" void __tsan_acquire(void* address);           // NOLINT(bugprone-reserved-identifier)
extern "C" void __tsan_release(void* address);           // NOLINT(bugprone-reserved-identifier)
#endif

namespace untax::host {

#ifdef UNTAX_MARKS_RACES
inline char other_processes = 0;  ///< stands for them all
#endif

/// OpenBLAS is not built with ThreadSanitizer, so what it reads and writes would go unseen. These
/// marks tell the sanitizer; without it they are nothing.
inline void mark_read([[maybe_unused]] const tile_memory& tile, [[maybe_unused]] std::int64_t rows,
                      [[maybe_unused]] std::int64_t cols) {
#ifdef UNTAX_MARKS_RACES
  const auto size = static_cast<std::int64_t>(size_of(tile.type));
  for (std::int64_t i = 0; i < rows; ++i) {
    __tsan_read_range(tile.data + i * tile.stride * size, static_cast<unsigned long>(cols * size));
  }
#endif
}

inline void mark_write([[maybe_unused]] const tile_memory& tile, [[maybe_unused]] std::int64_t rows,
                       [[maybe_unused]] std::int64_t cols) {
#ifdef UNTAX_MARKS_RACES
  const auto size = static_cast<std::int64_t>(size_of(tile.type));
  for (std::int64_t i = 0; i < rows; ++i) {
    __tsan_write_range(tile.data + i * tile.stride * size, static_cast<unsigned long>(cols * size));
  }
#endif
}

/// ThreadSanitizer looks at one process. What a thread did before it signalled to another process
/// is before what a thread of its own does when it has waited for another process, wherever a
/// protocol relies on the chain of signals between. These marks stand for that chain.
inline void mark_signal_to_process() {
#ifdef UNTAX_MARKS_RACES
  __tsan_release(&other_processes);
#endif
}
inline void mark_wait_for_process() {
#ifdef UNTAX_MARKS_RACES
  __tsan_acquire(&other_processes);
#endif
}

}  // namespace untax::host

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
inline char other_processes = 0;  ///< the address that stands for all other processes
#endif

/// ThreadSanitizer does not see the reads and writes of OpenBLAS, which is not built with it. These
/// marks report them. Without the sanitizer they do nothing.
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

/// ThreadSanitizer sees one process. A protocol may order two threads of this process through other
/// processes: the work of one before its signal to a process happens before the work of the other
/// after its wait for a process. These marks represent the chain of signals between them.
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
